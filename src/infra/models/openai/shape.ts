/** Thrown for what is no answer of the protocol, with the first place that differs. */
export class NotOfProtocol extends Error {
  constructor(place: string, wanted: string) {
    super(`${place || '/'} is not ${wanted}`)
    this.name = 'NotOfProtocol'
  }
}

/** An object of which nothing is known yet. */
export type Fields = { readonly [name: string]: unknown }

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Other people's shapes: what is needed for a reply must be right, and all else may be missing or odd. */

export const fieldsAt = (value: unknown, place: string): Fields => {
  if (isFields(value)) return value
  throw new NotOfProtocol(place, 'an object')
}

/** Null also where it is missing. */
export const optionalFieldsAt = (value: unknown, place: string): Fields | null =>
  value == null ? null : fieldsAt(value, place)

/** Empty also where it is missing. */
export const listAt = (value: unknown, place: string): readonly unknown[] => {
  if (value == null) return []
  if (Array.isArray(value)) return value
  throw new NotOfProtocol(place, 'a list')
}

export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

export const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : 0

export const indexOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null
