import { hash } from 'node:crypto'

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
