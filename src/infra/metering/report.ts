import { z } from 'zod'
import type { Sql } from '../../state/ports.ts'
import {
  adminTrials,
  readDimensions,
  type UsageDimension,
  type UsageGroup,
  type UsageReports,
} from '../../state/registry/usage.ts'
import type { Page } from '../../state/run-view.ts'
import { readCursorOf, writeCursor } from '../runs/page.ts'
import { moneyOf } from './cost.ts'
import { noCurrency } from './rows.ts'
import { endOf, startOf } from './span.ts'

/** What a group is grouped by, in the order of pages: '' where it is not grouped by it, or has none. */
type Place = [
  day: string,
  business: string,
  user: string,
  vendor: string,
  key: string,
  model: string,
  currency: string,
]

type Row = Pick<
  UsageGroup,
  | 'requests'
  | 'estimated_requests'
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'total_tokens'
  | 'cached_tokens'
  | 'reasoning_tokens'
> & { place: Place; cost_micro: string; vendor: string | null; key: string | null; model: string }

// the users of two businesses are never one, so a group by user is one by business too
const statement = `
  WITH wanted AS (SELECT string_to_array($1, ',') AS names), entries AS (
    SELECT l.*, ARRAY[
      CASE WHEN 'day' = ANY (names) THEN to_char(l.at AT TIME ZONE 'UTC', 'YYYY-MM-DD') ELSE '' END,
      CASE WHEN names && '{business,user}' THEN l.tenant ELSE '' END,
      CASE WHEN 'user' = ANY (names) THEN coalesce(l.user_id, '') ELSE '' END,
      CASE WHEN 'vendor' = ANY (names) THEN l.vendor_id ELSE '' END,
      CASE WHEN 'key' = ANY (names) THEN coalesce(l.key_id, '') ELSE '' END,
      CASE WHEN 'model' = ANY (names) THEN l.model_id ELSE '' END,
      l.currency] COLLATE "C" AS place
    FROM usage_ledger l, wanted
    WHERE ($2::timestamptz IS NULL OR l.at >= $2::timestamptz) AND ($3::timestamptz IS NULL OR l.at < $3::timestamptz)
      AND ($4::text IS NULL OR l.tenant = $4) AND ($5::text IS NULL OR l.user_id = $5)
      AND ($6::text IS NULL OR l.vendor_id = $6) AND ($7::text IS NULL OR l.key_id = $7)
      AND ($8::text IS NULL OR l.model_id = $8) AND ($9::text IS NULL OR l.run_id = $9)
  ), groups AS (
    SELECT place, count(*)::int8 AS requests, (count(*) FILTER (WHERE estimated))::int8 AS estimated_requests,
      sum(prompt_tokens)::int8 AS prompt_tokens, sum(completion_tokens)::int8 AS completion_tokens,
      sum(total_tokens)::int8 AS total_tokens, sum(cached_tokens)::int8 AS cached_tokens,
      sum(reasoning_tokens)::int8 AS reasoning_tokens, sum(cost_micro)::text AS cost_micro, max(model_name) AS last_name
    FROM entries
    WHERE $10::json IS NULL OR place > ARRAY(SELECT json_array_elements_text($10::json)) COLLATE "C"
    GROUP BY place ORDER BY place LIMIT $11
  )
  SELECT g.*, to_json(g.place) AS place, v.name AS vendor, k.label AS key, coalesce(m.name, g.last_name) AS model
  FROM groups g LEFT JOIN vendors v ON v.vendor_id = g.place[4] LEFT JOIN vendor_keys k ON k.key_id = g.place[5]
    LEFT JOIN models m ON m.model_id = g.place[6]
  ORDER BY g.place`

const cursorSchema = z.strictObject({ by: z.string(), after: z.array(z.string()).length(7) })

/** Sums of the ledger, a page of groups at a time. */
export const createReport =
  (database: Sql): UsageReports['report'] =>
  async (filter): Promise<Page<UsageGroup>> => {
    const dimensions = readDimensions(filter.group_by)
    const by = dimensions.toSorted().join(',')
    // a cursor goes on within the same groups only
    const after = readCursorOf(
      cursorSchema.refine((cursor) => cursor.by === by),
      filter.cursor,
    )
    const { rows } = await database.query<Row>(statement, [
      by,
      filter.from === undefined ? null : startOf(filter.from),
      filter.to === undefined ? null : endOf(filter.to),
      filter.business_id ?? null,
      filter.user_id ?? null,
      filter.vendor_id ?? null,
      filter.key_id ?? null,
      filter.model_id ?? null,
      filter.run_id ?? null,
      after && JSON.stringify(after.after),
      filter.limit + 1,
    ])
    const shown = rows.slice(0, filter.limit)
    const last = shown.at(-1)
    return {
      data: shown.map((row) => groupOf(row, new Set(dimensions))),
      next_cursor: rows.length > shown.length && last ? writeCursor({ by, after: last.place }) : null,
    }
  }

const groupOf = (row: Row, by: ReadonlySet<UsageDimension>): UsageGroup => {
  const [day, business_id, user, vendor_id, key, model_id, currency] = row.place
  return {
    ...(by.has('day') && { day }),
    ...((by.has('business') || by.has('user')) && {
      business_id: business_id === adminTrials ? null : business_id,
    }),
    ...(by.has('user') && { user_id: user || null }),
    ...(by.has('vendor') && { vendor_id, vendor: row.vendor }),
    ...(by.has('key') && { key_id: key || null, key: row.key }),
    ...(by.has('model') && { model_id, model: row.model }),
    requests: row.requests,
    estimated_requests: row.estimated_requests,
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    total_tokens: row.total_tokens,
    cached_tokens: row.cached_tokens,
    reasoning_tokens: row.reasoning_tokens,
    cost: moneyOf(BigInt(row.cost_micro)),
    currency: currency === noCurrency ? null : currency,
  }
}
