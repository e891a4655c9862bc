import type { RunFilter } from '../../engine/runs/run-queries.ts'
import { searchRuns } from '../../engine/runs/search-runs.ts'
import { type Database, sendFirst } from '../../infra/database/database.ts'
import { parseCursor, positionSchema, takePage, writeCursor } from '../../infra/database/pagination.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError } from '../../state/resource-schema.ts'
import type { RunPage, RunView } from '../../state/run-view.ts'

/** When a list that has not found its page says how far it came. */
const searchMs = 1000
/** After every run of its moment. */
const lastOfMoment = 'zzzz'

type Position = { at: string; id: string }
type FoundRun = Position & { run: RunPage['data'][number] }

/** Whether a position comes after another one in a list of the latest first. */
const isBeyond = (one: Position, other: Position): boolean =>
  one.at === other.at ? one.id < other.id : one.at < other.at

/** A database whose transactions may only read: the database itself refuses any write in them. */
export const toReadOnly = (database: Database): Pick<Database, 'asBusiness' | 'transaction'> => {
  const readOnly = <T>(work: (sql: Sql) => Promise<T>) => sendFirst('SET TRANSACTION READ ONLY', [], work)
  return {
    asBusiness: (businessId, work, options) => database.asBusiness(businessId, readOnly(work), options),
    transaction: (work, options) => database.transaction(readOnly(work), options),
  }
}

/** The businesses that have runs after a position, that of the latest run first. */
const businessesStatement = `
  SELECT b.tenant, r.created_at AS moment, r.created_at::text AS at FROM businesses b CROSS JOIN LATERAL (
    SELECT created_at FROM runs r WHERE r.tenant = b.tenant
      AND ($1::text IS NULL OR (r.created_at, r.run_id) < ($1::timestamptz, $2))
      AND ($3::timestamptz IS NULL OR r.created_at >= $3) AND ($4::timestamptz IS NULL OR r.created_at < $4)
    ORDER BY r.created_at DESC, r.run_id DESC LIMIT 1) r
  ORDER BY r.created_at DESC, b.tenant`

const positionsStatement = `
  SELECT run_id AS id, created_at::text AS at FROM runs WHERE tenant = $1 AND run_id = ANY($2)`

/**
 * A page of the runs of all businesses, the latest first. Each business is read by itself, under its own row-level security and in
 * transactions that may only read; those whose latest run is older than the page are not. `searched_to` as for one business.
 */
export const listAllRuns = async (
  database: Database,
  filter: RunFilter & { count?: boolean },
  ms = searchMs,
): Promise<RunPage> => {
  const { limit, cursor, from, to } = filter
  for (const name of ['order', 'count'] as const)
    if (filter[name] === 'asc' || filter[name] === true)
      throw createFieldsError({ pointer: `/${name}`, detail: 'is for one business; name it in business_id' })
  const until = performance.now() + ms
  const reader = toReadOnly(database)
  const after = parseCursor(positionSchema, cursor)
  const { rows: businesses } = await reader.transaction(
    (sql) =>
      sql.query<{ tenant: string; moment: Date; at: string }>(businessesStatement, [
        after?.at ?? null,
        after?.id ?? null,
        from ?? null,
        to ?? null,
      ]),
    { pipelined: true },
  )
  const found: FoundRun[] = []
  /** Down to here nothing is missing; null: nothing is missing. `time`: where looking took too long. */
  let floor: (Position & { time: string | null }) | null = null
  const raise = (end: Position, time: string | null): void => {
    if (!floor || isBeyond(floor, end)) floor = { ...end, time }
  }
  for (const [nth, { tenant, moment, at }] of businesses.entries()) {
    const next = { at, id: lastOfMoment }
    const last = found[limit - 1]
    const isFull = last !== undefined && isBeyond(next, last)
    if (isFull || (nth > 0 && performance.now() > until)) {
      raise(next, isFull ? null : moment.toISOString())
      break
    }
    const page = await searchRuns(reader, tenant, filter)
    found.push(...(await locate(reader, tenant, page.data)))
    found.sort((one, other) => (isBeyond(one, other) ? 1 : -1))
    const end = page.next_cursor === null ? null : parseCursor(positionSchema, page.next_cursor)
    if (end) raise(end, page.searched_to ?? null)
  }
  return toPage(found, floor, limit)
}

const toPage = (
  found: readonly FoundRun[],
  floor: (Position & { time: string | null }) | null,
  limit: number,
): RunPage => {
  const whole = found.filter((one) => !floor || !isBeyond(one, floor))
  const page = takePage(whole.slice(0, limit), ({ run }) => run)
  const isCut = page.length < whole.length
  const end = isCut ? page.at(-1) : floor
  return {
    data: page.map(({ run }) => run),
    next_cursor: end ? writeCursor({ at: end.at, id: end.id }) : null,
    ...(!isCut && page.length < limit && floor?.time && { searched_to: floor.time }),
  }
}

/** The exact moments of runs, which their views have in milliseconds. */
const locate = async (
  reader: Pick<Database, 'asBusiness'>,
  businessId: string,
  runs: readonly RunView[],
): Promise<FoundRun[]> => {
  const ids = runs.map(({ id }) => id)
  const { rows } = await reader.asBusiness(
    businessId,
    (sql) => sql.query<Position>(positionsStatement, [businessId, ids]),
    { pipelined: true },
  )
  const moments = new Map(rows.map(({ id, at }) => [id, at]))
  return runs.flatMap((run) => {
    const at = moments.get(run.id)
    // deleted meanwhile
    return at === undefined ? [] : [{ at, id: run.id, run }]
  })
}
