/** An object that is not a list. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value of a JSON text; any other text as it is. */
export const parseJsonOrText = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Whether a text is JSON, which is never its own value: that of a JSON string has no quotes. */
export const isJsonText = (text: string): boolean => parseJsonOrText(text) !== text

/** Whether an id is the same after the database has kept it: it stores no U+0000, and of half a surrogate pair U+FFFD, so that two ids would be one. */
export const isStorableId = (id: string): boolean => id.isWellFormed() && !/[\0\ufffd]/.test(id)

/** A text as the database can read it out of JSON: U+FFFD in place of NUL and of half a surrogate pair. */
export const toStoredText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')
