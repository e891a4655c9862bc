import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import type { Sql, SqlValues } from '../../state/ports/sql.ts'
import { idSchema } from '../../state/run-request.ts'
import type { Listed, Page } from '../../state/run-view.ts'
import { isValueList } from './named-parameters.ts'

/** The end of a page: the time as the database writes it, with microseconds, and the id. */
export const positionSchema = z.strictObject({
  at: z
    .string()
    .regex(
      /^(?!0000)\d{4}-\d\d-\d\d ([01]\d|2[0-3])(:[0-5]\d){2}(\.\d{1,6})?[+-](0\d|1[0-5])(:[0-5]\d){0,2}$/,
    )
    // the server fails on a day that the calendar does not have
    .refine((at) => z.iso.date().safeParse(at.slice(0, 10)).success),
  id: idSchema,
})

/** Encodes the position of a page's end as an opaque cursor. */
export const writeCursor = (position: unknown): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

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

/** A response has at most so many bytes of rows, its first row aside. */
export const maxPageBytes = 1024 * 1024
/** The first items of a page, `maxPageBytes` of what is shown of them at most, the first aside. */
export const takePage = <Item>(
  items: readonly Item[],
  toShown: (item: Item) => unknown = (item) => item,
): Item[] => {
  let bytes = 0
  const end = items.findIndex((item, at) => {
    bytes += Buffer.byteLength(JSON.stringify(toShown(item)))
    return at > 0 && bytes > maxPageBytes
  })
  return items.slice(0, end < 0 ? items.length : end)
}
/** What the database reads for a page, as it is stored: of texts that are cut, all is read. */
const maxReadBytes = 8 * maxPageBytes
/** A JSON value above this is cut in lists, and has so many characters of a text in it. */
const maxListedJsonBytes = 16 * 1024
/** What a list has of a long text. */
export const headChars = 1000

/** Whether a JSON column is too long for a list. The size as stored comes first: it is known without reading the value. */
export const isLongJson = (column: string): string =>
  `(pg_column_size(${column}) > ${maxListedJsonBytes} OR octet_length(${column}::text) > ${maxListedJsonBytes})`

/**
 * A JSON column for the operators of json, which refuse a document with NUL or half a surrogate pair: those are replaced.
 * U+0001 and U+0002, which no JSON text has, stand for escaped backslashes and whole pairs meanwhile.
 */
export const readableJson = (column: string): string => {
  const plain = String.raw`replace(${column}::text, '\\', chr(1))`
  const pairs = String.raw`'\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})', chr(2) || '\1' || chr(2) || '\2', 'gi'`
  const halves = String.raw`'\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi'`
  const replaced = `regexp_replace(regexp_replace(${plain}, ${pairs}), ${halves})`
  return String.raw`(CASE WHEN strpos(${column}::text, '\u') = 0 THEN ${column}
    ELSE replace(replace(${replaced}, chr(2), '\u'), chr(1), '\\')::json END)`
}

/** A JSON column for a list: a long one is `head`, by default an empty value of its type, or the beginning of a text. */
export const cutJson = (
  column: string,
  head = `(CASE json_typeof(${column}) WHEN 'array' THEN '[]'::json WHEN 'object' THEN '{}'::json
    ELSE to_json(left(${readableJson(column)} #>> '{}', ${headChars})) END)`,
): string => `CASE WHEN ${isLongJson(column)} THEN ${head} ELSE ${column} END`

/** The column `truncated`: the names of the fields whose condition holds. */
export const truncatedColumn = (conditions: Readonly<Record<string, string>>): string => {
  const names = Object.entries(conditions).map(
    ([name, condition]) => `CASE WHEN ${condition} THEN '${name}' END`,
  )
  return `array_to_json(array_remove(ARRAY[${names.join(', ')}]::text[], NULL)) AS truncated`
}

/** A list: what one statement selects. `values` are the parameters of its SQL. */
export type ListQuery = {
  select: string
  from: string
  where?: string
  values?: SqlValues
  /** The time and the id that order the list. */
  at: string
  id: string
  /** The bytes that are stored of what `pageColumns` reads. */
  storedBytes?: string
  /** Absent: the latest first. */
  oldestFirst?: boolean
  /** The columns of a page in place of those selected, of `l`: for what costs too much to read of a row beyond the page. */
  pageColumns?: string
}

/** Which page of a list: `cursor` is from the page before. */
export type PageRequest = { limit: number; cursor?: string }

/** The columns by which a page is cut, beside the view's own. */
export type PageRow = {
  page_at: string
  page_row: number
  found: number
  stored_bytes: number
  read_bytes: number
  page_bytes: number
}

/** What is left of `page_at`, `id` and the columns of a page of `listed`, which has a row more than `limit` where there are more. */
export const limitPageSql = (listed: string, limit: string, pageColumns = 'l.*'): string => `
  WITH listed AS (${listed}
  ), numbered AS (
    SELECT *, (row_number() OVER rows)::int AS page_row, (count(*) OVER ())::int AS found, sum(stored_bytes) OVER rows AS read_bytes
    FROM listed WINDOW rows AS (ROWS UNBOUNDED PRECEDING)
  ), page AS (
    SELECT ${pageColumns}${pageColumns === 'l.*' ? '' : ', l.page_at, l.page_row, l.found'} FROM numbered l
    WHERE page_row = 1 OR (page_row <= ${limit}::int AND read_bytes <= ${maxReadBytes})
  ), sized AS (
    SELECT p.*, sum(octet_length(p::text)) OVER (ORDER BY page_row) AS page_bytes FROM page p
  )
  SELECT * FROM sized WHERE page_row = 1 OR page_bytes <= ${maxPageBytes} ORDER BY page_row`

const buildStatement = (list: ListQuery): string => {
  const { select, from, where = 'true', values = [], at, id, storedBytes = '0', oldestFirst } = list
  const [beyond, order] = oldestFirst ? ['>', 'ASC'] : ['<', 'DESC']
  const [afterAt, afterId, limit = ''] = ['after_at', 'after_id', 'page_limit'].map((name, index) =>
    isValueList(values) ? `$${values.length + index + 1}` : `$${name}`,
  )
  const listed = `
    SELECT ${select}, ${at}::text AS page_at, ${storedBytes} AS stored_bytes FROM ${from}
    WHERE (${where}) AND (${afterAt}::text IS NULL OR (${at}, ${id}) ${beyond} (${afterAt}::timestamptz, ${afterId}))
    ORDER BY ${at} ${order}, ${id} ${order} LIMIT ${limit}::int + 1`
  return limitPageSql(listed, limit, list.pageColumns)
}

/**
 * Reads one page of a list: at most `limit` rows and `maxPageBytes` of them, at least one. Every list goes through here, so
 * that what a process holds of a list has a limit whatever is in its rows.
 */
export const readPage = async <Row extends object, Item>(
  sql: Pick<Sql, 'query'>,
  list: ListQuery,
  { cursor, limit }: PageRequest,
  toView: (row: Row) => Item | (Item & Listed),
): Promise<Page<Item>> => {
  const after = parseCursor(positionSchema, cursor)
  const { values = [] } = list
  const bounds = { after_at: after?.at ?? null, after_id: after?.id ?? null, page_limit: limit }
  const { rows } = await sql.query<{ id: string } & PageRow & Listed>(
    buildStatement(list),
    isValueList(values) ? [...values, ...Object.values(bounds)] : { ...values, ...bounds },
  )
  const last = rows.at(-1)
  const isLast = !last || last.found === rows.length
  return {
    data: rows.map((row) => toListedItem(row, toView)),
    next_cursor: isLast ? null : writeCursor({ at: last.page_at, id: last.id }),
  }
}

/** A row of a page as an item of the list. */
export const toListedItem = <Row, Item>(row: PageRow & Listed, toView: (row: Row) => Item): Item & Listed => {
  const {
    page_at: _,
    page_row: __,
    found: ___,
    stored_bytes: ____,
    read_bytes: _____,
    page_bytes: ______,
    ...own
  } = row
  const { truncated: byRow, ...columns } = own
  const { truncated: byView, ...view } = toView(columns as Row) as Item & Listed
  const truncated = [...(byRow ?? []), ...(byView ?? [])]
  return { ...(view as Item), ...(truncated.length > 0 && { truncated }) }
}

/** All items of a list, of which one page is in memory at a time. */
export async function* readAllPages<Item>(
  read: (page: PageRequest) => Promise<Page<Item>>,
): AsyncGenerator<Item & Listed> {
  for (let page: PageRequest = { limit: 200 }; ; ) {
    const { data, next_cursor } = await read(page)
    for (const item of data) yield item
    if (next_cursor === null) return
    page = { ...page, cursor: next_cursor }
  }
}
