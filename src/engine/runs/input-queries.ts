import {
  cutJson,
  isLongJson,
  type PageRequest,
  readPage,
  truncatedColumn,
} from '../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../infra/database/row-times.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { openStatusesSql } from '../../state/run-status.ts'
import type { InputRequestStatus, InputRequestView, Page } from '../../state/run-view.ts'

/** Which questions a list has. */
export type InputFilter = PageRequest & { status?: InputRequestStatus; user_id?: string; run_id?: string }

type InputRow = Dated<Omit<InputRequestView, 'secret'>> & { secret: boolean }

const statusSql = `CASE WHEN i.answer::text LIKE '{"kind":"expired"%' THEN 'expired' WHEN i.answer IS NOT NULL THEN 'answered'
  WHEN i.answered_at IS NOT NULL OR r.status NOT IN ${openStatusesSql} THEN 'closed' WHEN i.expires_at <= clock_timestamp() THEN 'expired' ELSE 'open' END`

const columns = `id, run_id, session_id, user_id, status, secret, created_at, expires_at, answered_at`
const jsonColumns = ['question', 'schema', 'options']

/** The questions of a business's runs, the latest first. */
export const listInputRequests = (
  sql: Sql,
  businessId: string,
  filter: InputFilter,
): Promise<Page<InputRequestView>> => {
  const list = {
    select: `i.request_id AS id, i.run_id, r.session_id, q.user_id, ${statusSql} AS status, i.secret, i.created_at, i.expires_at,
      i.answered_at, i.question, i.schema, i.options`,
    storedBytes: jsonColumns.map((column) => `pg_column_size(i.${column})`).join(' + '),
    pageColumns: `l.${columns.replaceAll(/,\s+/g, ', l.')}, ${jsonColumns.map((column) => `${cutJson(`l.${column}`)} AS ${column}`).join(', ')},
      ${truncatedColumn(Object.fromEntries(jsonColumns.map((column) => [column, isLongJson(`l.${column}`)])))}`,
    // run by run, in the order of the list: joined as a whole, a plan from when there were none reads all of both
    from: `(SELECT * FROM input_requests WHERE tenant = $1 AND ($4::text IS NULL OR run_id = $4) ORDER BY created_at DESC, request_id DESC OFFSET 0) i
      CROSS JOIN LATERAL (SELECT session_id, status FROM runs WHERE tenant = $1 AND run_id = i.run_id OFFSET 0) r
      CROSS JOIN LATERAL (SELECT user_id FROM run_requests WHERE tenant = $1 AND run_id = i.run_id OFFSET 0) q`,
    at: 'i.created_at',
    id: 'i.request_id',
    where: `($2::text IS NULL OR ${statusSql} = $2) AND ($3::text IS NULL OR q.user_id = $3)`,
    values: [businessId, filter.status ?? null, filter.user_id ?? null, filter.run_id ?? null],
  }
  return readPage(sql, list, filter, ({ secret, ...row }: InputRow) => ({
    ...toIsoTimes(row),
    ...(secret && { secret: true as const }),
  }))
}
