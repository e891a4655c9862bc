import { hash, subtle } from 'node:crypto'

/** A JSON value whose keys are in one order. */
export const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, item]) => [key, sortKeys(item)]),
  )
}

/** The SHA-256 hash, in hexadecimal, of a JSON value; it does not depend on the order of its keys. */
export const contentHash = (value: unknown): string => hash('sha256', JSON.stringify(sortKeys(value)))

/** The SHA-256 hash of many bytes, in hexadecimal, computed in another thread. */
export const hashBytes = async (bytes: Buffer<ArrayBuffer>): Promise<string> =>
  Buffer.from(await subtle.digest('SHA-256', bytes)).toString('hex')

/** The same of JSON in which a mark is in place of each of these long texts, that need no escape and so are not written by `JSON.stringify`. */
export const hashMarkedJson = (json: string, mark: string, texts: readonly string[]): Promise<string> =>
  hashBytes(
    Buffer.from(
      json
        .split(mark)
        .flatMap((part, at) => [part, texts[at] ?? ''])
        .join(''),
    ),
  )
