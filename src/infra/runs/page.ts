import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import { idSchema } from '../../state/run-request.ts'
import type { Page } from '../../state/run-view.ts'

/** Where a page ended: the time as the database writes it, to the microsecond, and the id. */
type Position = { at: string; id: string }

const positionSchema = z.strictObject({
  at: z
    .string()
    .regex(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2}$/)
    .refine((at) => isDate(at)),
  id: idSchema,
})

/** A day that a calendar has; the server would stumble over others. */
const isDate = (at: string): boolean => {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = at.split(/[-: .+]/).map(Number)
  const date = new Date(Date.UTC(year, month - 1, day, hour, minute, second))
  return date.getUTCMonth() === month - 1 && date.getUTCHours() === hour && date.getUTCMinutes() === minute
}

export const writeCursor = (position: unknown): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

export const readCursor = (cursor: string | undefined): Position | null =>
  readCursorOf(positionSchema, cursor)

/** The position in a cursor; `invalid_request` for one that is not ours. */
export const readCursorOf = <Place>(schema: z.ZodType<Place>, cursor: string | undefined): Place | null => {
  if (cursor === undefined) return null
  try {
    return schema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')))
  } catch {
    throw new MasonError('invalid_request', 'the cursor is not one of ours', {
      remedy: 'take next_cursor of the page before as it stands, or leave it out',
      detail: { errors: [{ pointer: '/cursor', detail: 'must be the next_cursor of an earlier answer' }] },
    })
  }
}

/** A page of rows read with one more than `limit`. */
export const pageOf = <Row extends Position, Item>(
  rows: readonly Row[],
  limit: number,
  viewOf: (row: Row) => Item,
): Page<Item> => {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    data: shown.map(viewOf),
    next_cursor: rows.length > limit && last ? writeCursor({ at: last.at, id: last.id }) : null,
  }
}
