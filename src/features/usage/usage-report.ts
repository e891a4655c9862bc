import { z } from 'zod'
import {
  limitPageSql,
  type PageRow,
  parseCursor,
  toListedItem,
  writeCursor,
} from '../../infra/database/pagination.ts'
import { toMoney } from '../../infra/lib/money.ts'
import { adminProbeBusinessId, noCurrency } from '../../models/metering/ledger-rows.ts'
import type { MeteredUsage } from '../../models/ports/model-ports.ts'
import { readSpan } from '../../routes/parameters.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createPlainTextSchema } from '../../state/resource-schema.ts'
import type { Page } from '../../state/run-view.ts'
import { readDimensions, type UsageDimension, type UsageFilter, type UsageGroup } from './usage-schemas.ts'

/** The key of a group, in the order of pages: '' where it is not grouped by the dimension, or has no value. */
type GroupKey = [
  day: string,
  business: string,
  user: string,
  session: string,
  run: string,
  role: string,
  vendor: string,
  key: string,
  model: string,
  tool: string,
  currency: string,
]

type Sums = MeteredUsage & Pick<UsageGroup, 'requests' | 'estimated_requests'>
type Names = { vendor: string | null; key: string | null; model: string }
type Row = Sums & Names & { group_key: GroupKey; cost_micro: string }

// ids of users and sessions are unique within a business, so a group by them is also one by business
const groupsSql = `
  WITH dimensions AS (SELECT string_to_array($by, ',') AS names), entries AS (
    SELECT l.*, ARRAY[
      CASE WHEN 'day' = ANY (names) THEN to_char(l.at AT TIME ZONE 'UTC', 'YYYY-MM-DD') ELSE '' END,
      CASE WHEN names && '{business,user,session,run}' THEN l.tenant ELSE '' END,
      CASE WHEN 'user' = ANY (names) THEN coalesce(l.user_id, '') ELSE '' END,
      CASE WHEN 'session' = ANY (names) THEN coalesce((
        SELECT r.session_id FROM runs r WHERE r.tenant = l.tenant AND r.run_id = l.run_id), '') ELSE '' END,
      CASE WHEN 'run' = ANY (names) THEN coalesce(l.run_id, '') ELSE '' END,
      CASE WHEN 'role' = ANY (names) THEN l.role ELSE '' END,
      CASE WHEN 'vendor' = ANY (names) THEN l.vendor_id ELSE '' END,
      CASE WHEN 'key' = ANY (names) THEN coalesce(l.key_id, '') ELSE '' END,
      CASE WHEN 'model' = ANY (names) THEN l.model_id ELSE '' END,
      CASE WHEN 'tool' = ANY (names) THEN coalesce(l.tool, '') ELSE '' END,
      l.currency] COLLATE "C" AS place
    FROM usage_ledger l, dimensions
    WHERE ($from::timestamptz IS NULL OR l.at >= $from::timestamptz) AND ($to::timestamptz IS NULL OR l.at < $to::timestamptz)
      AND ($business_id::text IS NULL OR l.tenant = $business_id) AND ($user_id::text IS NULL OR l.user_id = $user_id)
      AND ($vendor_id::text IS NULL OR l.vendor_id = $vendor_id) AND ($key_id::text IS NULL OR l.key_id = $key_id)
      AND ($model_id::text IS NULL OR l.model_id = $model_id) AND ($run_id::text IS NULL OR l.run_id = $run_id)
  ), groups AS (
    SELECT place, count(*)::int8 AS requests, (count(*) FILTER (WHERE estimated))::int8 AS estimated_requests,
      sum(prompt_tokens)::int8 AS prompt_tokens, sum(completion_tokens)::int8 AS completion_tokens,
      sum(total_tokens)::int8 AS total_tokens, sum(cached_tokens)::int8 AS cached_tokens,
      sum(reasoning_tokens)::int8 AS reasoning_tokens, sum(cost_micro)::text AS cost_micro, max(model_name) AS last_name
    FROM entries
    WHERE $after::json IS NULL OR place > ARRAY(SELECT json_array_elements_text($after::json)) COLLATE "C"
    GROUP BY place ORDER BY place LIMIT $limit::int + 1
  )
  SELECT to_json(g.place) AS group_key, requests, estimated_requests, prompt_tokens, completion_tokens, total_tokens, cached_tokens,
    reasoning_tokens, cost_micro, v.name AS vendor, k.label AS key, coalesce(m.name, g.last_name) AS model, '' AS page_at, 0 AS stored_bytes
  FROM groups g LEFT JOIN vendors v ON v.vendor_id = g.place[7] LEFT JOIN vendor_keys k ON k.key_id = g.place[8]
    LEFT JOIN models m ON m.model_id = g.place[9]
  ORDER BY g.place`

const statement = limitPageSql(groupsSql, '$limit')

const cursorSchema = z.strictObject({ by: z.string(), after: z.array(createPlainTextSchema(300)).length(11) })

/** Sums of the ledger, a page of groups at a time. Throws `invalid_request`. */
export const createUsageReport =
  (database: Sql) =>
  async (filter: UsageFilter & { limit: number; cursor?: string | undefined }): Promise<Page<UsageGroup>> => {
    const dimensions = readDimensions(filter.group_by)
    const by = dimensions.toSorted().join(',')
    // a cursor is valid for the same groups only
    const after = parseCursor(
      cursorSchema.refine((cursor) => cursor.by === by),
      filter.cursor,
    )
    const { from = null, to = null } = readSpan(filter)
    const { rows } = await database.query<Row & PageRow>(statement, {
      by,
      from,
      to,
      business_id: filter.business_id ?? null,
      user_id: filter.user_id ?? null,
      vendor_id: filter.vendor_id ?? null,
      key_id: filter.key_id ?? null,
      model_id: filter.model_id ?? null,
      run_id: filter.run_id ?? null,
      after: after && JSON.stringify(after.after),
      limit: filter.limit,
    })
    const last = rows.at(-1)
    return {
      data: rows.map((row) => toListedItem(row, (group: Row) => toUsageGroup(group, new Set(dimensions)))),
      next_cursor: last && last.found > rows.length ? writeCursor({ by, after: last.group_key }) : null,
    }
  }

const toUsageGroup = (row: Row, by: ReadonlySet<UsageDimension>): UsageGroup => {
  const { group_key, cost_micro, vendor, key: label, model, ...sums } = row
  const [day, business_id, user, session, run, role, vendor_id, key, model_id, tool, currency] = group_key
  const inBusiness = (['business', 'user', 'session', 'run'] as const).some((name) => by.has(name))
  return {
    ...(by.has('day') && { day }),
    ...(inBusiness && {
      business_id: business_id === adminProbeBusinessId ? null : business_id,
    }),
    ...(by.has('user') && { user_id: user || null }),
    ...(by.has('session') && { session_id: session || null }),
    ...(by.has('run') && { run_id: run || null }),
    ...(by.has('role') && { role }),
    ...(by.has('tool') && { tool: tool || null }),
    ...(by.has('vendor') && { vendor_id, vendor }),
    ...(by.has('key') && { key_id: key || null, key: label }),
    ...(by.has('model') && { model_id, model }),
    ...sums,
    cost: toMoney(cost_micro),
    currency: currency === noCurrency ? null : currency,
  }
}
