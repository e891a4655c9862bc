import { z } from 'zod'
import { normaliseDate } from './piece-date.ts'
import { normaliseTable } from './piece-table.ts'
import type { Json, OutputType } from './runtime-state.ts'

/** The content of one output piece against its type: what a model wrote goes in, what the state keeps comes out. */

/** `fault` completes "the content of piece 'x' …" and tells a model what to write instead. */
export type CheckedPiece = { ok: true; value: Json } | { ok: false; fault: string }

const good = (value: Json): CheckedPiece => ({ ok: true, value })
const bad = (fault: string): CheckedPiece => ({ ok: false, fault })

/** A value as it appears in a fault: short, and of any kind. */
const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length <= 60 ? text : `${text.slice(0, 59).toWellFormed()}…`
}

const numeric = /^[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

/** A finite number, or its text ("1,234.50"). Refuses whole numbers that a double would change. */
const checkNumber = (value: unknown): CheckedPiece => {
  const text = typeof value === 'string' ? value.trim() : value
  const isText = typeof text === 'string' && numeric.test(text)
  const number = isText ? Number(text.replaceAll(',', '')) : text
  if (typeof number !== 'number' || !Number.isFinite(number))
    return bad(`must be a number such as 1234.5, without units, not ${shown(value)}`)
  if (isText && /^[+-]?[\d,]+$/.test(text) && !Number.isSafeInteger(number))
    return bad(`has more digits than a number can hold: ${shown(value)}`)
  return good(number)
}

const truths: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  [true, true],
  ['true', true],
  ['yes', true],
  ['是', true],
  [false, false],
  ['false', false],
  ['no', false],
  ['否', false],
])

const checkBoolean = (value: unknown): CheckedPiece => {
  const truth = truths.get(typeof value === 'string' ? value.trim().toLowerCase() : value)
  return truth === undefined ? bad(`must be true or false, not ${shown(value)}`) : good(truth)
}

const checkDate = (value: unknown): CheckedPiece => {
  const date = typeof value === 'string' ? normaliseDate(value) : null
  if (date !== null) return good(date)
  return bad(`must be a date that exists, as 2025-01-31 or 2025-01-31T18:30:00Z, not ${shown(value)}`)
}

const checkJson = (value: unknown): CheckedPiece => {
  const parsed = z.json().safeParse(value)
  return parsed.success ? good(parsed.data) : bad(`must be JSON, not ${shown(value)}`)
}

/** The content in its one form (numbers as numbers, dates as ISO, tables as columns and rows), or what is wrong. */
export const checkPiece = (type: OutputType, value: unknown): CheckedPiece => {
  switch (type) {
    case 'text':
      return typeof value === 'string' ? good(value) : bad(`must be text, not ${shown(value)}`)
    case 'number':
      return checkNumber(value)
    case 'boolean':
      return checkBoolean(value)
    case 'date':
      return checkDate(value)
    case 'list':
      return Array.isArray(value) ? checkJson(value) : bad(`must be a list, not ${shown(value)}`)
    case 'table':
      return normaliseTable(value)
    case 'json':
      return checkJson(value)
    default:
      throw type satisfies never
  }
}

const cell = { type: ['string', 'number', 'boolean', 'null'] }

/** JSON Schema of a piece's content, to ask a model for it; `checkPiece` takes all that it describes. */
export const pieceJsonSchema = (type: OutputType): Record<string, unknown> => {
  switch (type) {
    case 'text':
      return { type: 'string' }
    case 'number':
      return { type: 'number' }
    case 'boolean':
      return { type: 'boolean' }
    case 'date':
      return { type: 'string', description: 'ISO 8601 date or date-time: 2025-01-31 or 2025-01-31T18:30:00Z' }
    case 'list':
      return { type: 'array', items: {} }
    case 'table':
      return {
        type: 'object',
        description: 'Every row has one cell for each column.',
        properties: {
          columns: { type: 'array', items: { type: 'string' } },
          rows: { type: 'array', items: { type: 'array', items: cell } },
        },
        required: ['columns', 'rows'],
        additionalProperties: false,
      }
    case 'json':
      return {}
    default:
      throw type satisfies never
  }
}
