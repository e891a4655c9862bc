import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import { idSchema } from '../../state/run-request.ts'
import type { Page } from '../../state/run-view.ts'

/** The end of a page: the time as the database writes it, with microseconds, and the id. */
type CursorPosition = { at: string; id: string }

const positionSchema = z.strictObject({
  at: z
    .string()
    .regex(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2}$/)
    .refine((at) => isDate(at)),
  id: idSchema,
})

/** Whether the date exists in the calendar; the server would fail on others. */
const isDate = (at: string): boolean => {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = at.split(/[-: .+]/).map(Number)
  const date = new Date(Date.UTC(year, month - 1, day, hour, minute, second))
  return date.getUTCMonth() === month - 1 && date.getUTCHours() === hour && date.getUTCMinutes() === minute
}

/** Encodes the position of a page's end as an opaque cursor. */
export const writeCursor = (position: unknown): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

/** The values of a page's statement: the position after which it begins, and one row more than its limit. */
export const toPageValues = ({ cursor, limit }: { cursor?: string; limit: number }) => {
  const after = parseCursor(positionSchema, cursor)
  return [after?.at ?? null, after?.id ?? null, limit + 1] as const
}

/** Decodes a cursor whose position matches `schema`, or null without one. Throws `invalid_request` for an invalid cursor. */
export const parseCursor = <Position>(
  schema: z.ZodType<Position>,
  cursor: string | undefined,
): Position | null => {
  if (cursor === undefined) return null
  try {
    return schema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')))
  } catch {
    throw new MasonError('invalid_request', 'the cursor is invalid', {
      remedy: 'pass next_cursor of the previous page unchanged, or leave cursor out',
      detail: { errors: [{ pointer: '/cursor', detail: 'must be the next_cursor of an earlier response' }] },
    })
  }
}

/** Makes a page of rows that were read with `limit + 1`: the extra row only says that there is a next page. */
export const toPage = <Row extends CursorPosition, Item>(
  rows: readonly Row[],
  limit: number,
  toView: (row: Row) => Item,
): Page<Item> => {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    data: page.map(toView),
    next_cursor: rows.length > limit && last ? writeCursor({ at: last.at, id: last.id }) : null,
  }
}
