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

/** A text as the database can read it out of JSON: U+FFFD in place of NUL and of half a surrogate pair. */
export const toStoredText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')
