import type { FastifyRequest } from 'fastify'
import type { AuditEntry } from '../../audited-database.ts'
import { requestPath } from './error-responses.ts'

/** What the log of changes says of a validated request of an admin. */
export const toAuditEntry = (request: FastifyRequest): AuditEntry => {
  const { principal, ip, id, routeOptions } = request
  const params = readMembers(request.params)
  const body = readMembers(request.body)
  const operator = principal?.kind === 'admin' ? principal.operator : undefined
  const resource = requestPath(request)
  const own = [params.id, body.id, resource === '/admin/v1/users' ? body.user_id : null].find(isText) ?? null
  const named = [params.business_id, readMembers(request.query).business_id, body.business_id].find(isText)
  return {
    token_id: operator?.token_id ?? null,
    token_label: operator?.label ?? (principal?.kind === 'admin' ? 'MASON_ADMIN_TOKEN' : 'auth is off'),
    address: ip,
    request_id: id,
    operation: routeOptions.config.doc?.id ?? '',
    resource,
    resource_id: own,
    business_id: named ?? (/^\/admin\/v1\/businesses(\/|$)/.test(resource) ? own : null),
    fields: Object.keys(body),
  }
}

const readMembers = (part: unknown): Record<string, unknown> =>
  typeof part === 'object' && part !== null ? (part as Record<string, unknown>) : {}

const isText = (value: unknown): value is string => typeof value === 'string'
