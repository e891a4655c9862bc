import type { AuditFilter, AuditView } from '../accounts/audit-schemas.ts'
import type { Database } from '../infra/database/database.ts'
import { type PageRequest, readPage } from '../infra/database/pagination.ts'
import type { Page } from '../state/run-view.ts'

type AuditRow = Omit<AuditView, 'at'> & { at: Date }

const filters = ['token_id', 'operation', 'resource_id', 'business_id', 'request_id'] as const

/** What admins changed, the latest first. `from` is included, `to` is not. */
export const listAudit = (
  database: Database,
  filter: PageRequest & { [Name in keyof AuditFilter]?: AuditFilter[Name] | undefined } & {
    from?: string
    to?: string
  },
): Promise<Page<AuditView>> => {
  const values: unknown[] = []
  const bind = (value: unknown): string => `$${values.push(value)}`
  const conditions = filters.flatMap((name) =>
    filter[name] === undefined ? [] : [`${name} = ${bind(filter[name])}`],
  )
  if (filter.from !== undefined) conditions.push(`at >= ${bind(filter.from)}::timestamptz`)
  if (filter.to !== undefined) conditions.push(`at < ${bind(filter.to)}::timestamptz`)
  return readPage(
    database,
    {
      select:
        'audit_id AS id, at, token_id, token_label, address, request_id, operation, resource, resource_id, business_id, fields',
      from: 'audit_log',
      where: conditions.join(' AND ') || 'true',
      values,
      at: 'audit_log.at',
      id: 'audit_id',
    },
    filter,
    ({ at, ...row }: AuditRow) => ({ ...row, at: at.toISOString() }),
  )
}
