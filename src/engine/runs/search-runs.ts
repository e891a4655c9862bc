import { type Database, queryOne, sendFirst } from '../../infra/database/database.ts'
import { isStatementTimeout } from '../../infra/database/database-errors.ts'
import { parseCursor, positionSchema, writeCursor } from '../../infra/database/pagination.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { RunPage, RunView } from '../../state/run-view.ts'
import { buildRunFilter, listRuns, type RunFilter } from './run-queries.ts'

/** Milliseconds: of the statement that most lists are, of a list that is looked for in slices after it, and of a count. */
const limits = { directMs: 400, slicedMs: 600, countMs: 500 }
/** A count says no more than this. */
const maxCount = 10_000
const firstSlice = 500

type SearchDatabase = Pick<Database, 'asBusiness'>

/** Statements on behalf of a business, none of which takes longer. Throws what `isStatementTimeout` knows. */
const runWithin = <T>(
  database: SearchDatabase,
  businessId: string,
  ms: number,
  work: (sql: Sql) => Promise<T>,
): Promise<T> =>
  database.asBusiness(
    businessId,
    sendFirst("SELECT set_config('statement_timeout', $1, true)", [String(Math.ceil(ms))], work),
    { pipelined: true },
  )

const unlessTimedOut = async <T>(work: Promise<T>): Promise<T | null> => {
  try {
    return await work
  } catch (error) {
    if (isStatementTimeout(error)) return null
    throw error
  }
}

/** How many runs the filter has. */
export const countRuns = async (
  sql: Sql,
  businessId: string,
  filter: Omit<RunFilter, 'limit' | 'cursor'>,
  /** Counts so many at most. */
  most?: number,
): Promise<number> => {
  const { from, where, values } = buildRunFilter(businessId, filter)
  const { rows } = await sql.query<{ runs: number }>(
    most === undefined
      ? `SELECT count(*)::int AS runs FROM ${from} WHERE ${where}`
      : `SELECT count(*)::int AS runs FROM (SELECT FROM ${from} WHERE ${where} LIMIT ${most}) AS counted`,
    values,
  )
  return rows[0]?.runs ?? 0
}

/**
 * A page of runs. Filters that no index answers together are looked for from one end of the list for a second: `searched_to` says how
 * far, and the cursor goes on from there.
 */
export const searchRuns = async (
  database: SearchDatabase,
  businessId: string,
  { count, ...filter }: RunFilter & { count?: boolean },
  { directMs, slicedMs, countMs } = limits,
): Promise<RunPage> => {
  const direct = runWithin(database, businessId, directMs, (sql) => listRuns(sql, businessId, filter))
  const page: RunPage =
    (await unlessTimedOut(direct)) ?? (await searchSlices(database, businessId, filter, slicedMs))
  if (!count) return page
  const { limit: _, cursor: __, ...counted } = filter
  const found = await unlessTimedOut(
    runWithin(database, businessId, countMs, (sql) => countRuns(sql, businessId, counted, maxCount + 1)),
  )
  return {
    ...page,
    count: found === null ? null : Math.min(found, maxCount),
    count_capped: found === null || found > maxCount,
  }
}

/** The run that is so many further down the list; null: there are fewer. */
const edgeSql = (beyond: '<' | '>', order: 'DESC' | 'ASC'): string => `
  SELECT created_at AS moment, created_at::text AS at FROM runs
  WHERE tenant = $1 AND ($2::text IS NULL OR (created_at, run_id) ${beyond} ($2::timestamptz, $3))
    AND ($4::timestamptz IS NULL OR created_at >= $4) AND ($5::timestamptz IS NULL OR created_at < $5)
  ORDER BY created_at ${order}, run_id ${order} OFFSET $6::int LIMIT 1`
const [downwards, upwards] = [edgeSql('<', 'DESC'), edgeSql('>', 'ASC')]

/** Looks for runs in slices of the list, each twice as long as the one before, for `ms`. */
export const searchSlices = async (
  database: SearchDatabase,
  businessId: string,
  filter: RunFilter,
  ms: number,
): Promise<RunPage> => {
  const until = performance.now() + ms
  const isUpwards = filter.order === 'asc'
  const data: RunView[] = []
  let { cursor } = filter
  let searchedTo: Date | null = null
  const left = (): number => until - performance.now()
  for (let slice = firstSlice; left() > 0; slice *= 2) {
    const after = parseCursor(positionSchema, cursor)
    const bounds = [filter.from ?? null, filter.to ?? null]
    const edge = await database.asBusiness(businessId, (sql) =>
      queryOne<{ moment: Date; at: string }>(sql, isUpwards ? upwards : downwards, [
        businessId,
        after?.at ?? null,
        after?.id ?? null,
        ...bounds,
        slice,
      ]),
    )
    const limit = filter.limit - data.length
    const sliced = {
      ...filter,
      limit,
      ...(cursor !== undefined && { cursor }),
      ...(edge && { edge: edge.at }),
    }
    const search = (sql: Sql) => listRuns(sql, businessId, sliced)
    // the first slice takes as long as its rows are large, so that each page comes further than the one before
    const page =
      slice === firstSlice
        ? await database.asBusiness(businessId, search)
        : await unlessTimedOut(runWithin(database, businessId, Math.max(1, left()), search))
    if (!page) break
    data.push(...page.data)
    if (page.next_cursor !== null || !edge) return { data, next_cursor: page.next_cursor }
    searchedTo = edge.moment
    // all at the moment of the edge are in the slice, whatever their ids
    cursor = writeCursor({ at: edge.at, id: isUpwards ? 'zzzz' : '-' })
    if (data.length === filter.limit) return { data, next_cursor: cursor }
  }
  return {
    data,
    next_cursor:
      cursor ?? writeCursor({ at: isUpwards ? '0001-01-01 00:00:00+00' : '9999-12-31 00:00:00+00', id: '-' }),
    searched_to: searchedTo?.toISOString() ?? null,
  }
}
