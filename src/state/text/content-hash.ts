import { hash, subtle } from 'node:crypto'
import { nextTurn } from './next-turn.ts'

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, item]) => [key, sortKeys(item)]))
}

/** The SHA-256 hash, in hexadecimal, of a JSON value; it does not depend on the order of its keys. */
export const contentHash = (value: unknown): string => hash('sha256', JSON.stringify(sortKeys(value)))

/** The SHA-256 hash, in hexadecimal; what is large is hashed in another thread, and encoded in a turn of its own. */
export const hashLarge = async (data: string | Buffer<ArrayBuffer>): Promise<string> => {
  if (data.length < 1024 * 1024) return hash('sha256', data)
  await nextTurn()
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  return Buffer.from(await subtle.digest('SHA-256', bytes)).toString('hex')
}

/** The `contentHash` of a value that may be large. */
export const hashLargeContent = (value: unknown): Promise<string> =>
  hashLarge(JSON.stringify(sortKeys(value)))
