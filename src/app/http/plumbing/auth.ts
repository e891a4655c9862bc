import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { HttpError } from '../../../routes/problems.ts'
import type { RequiredRole, RouteServer } from '../../../routes/route.ts'
import { MasonError } from '../../../state/errors.ts'
import { createFieldsError } from '../../../state/resource-schema.ts'
import type { Runtime } from '../../api.ts'

/** The authenticated caller. The admin acts for any business, a token for its own; with auth off all are `default`. */
export type Principal =
  /** `operator`: whose token it is; absent: the token of the settings. */
  | { kind: 'admin'; operator?: { token_id: string; label: string } }
  | { kind: 'token'; business_id: string; token_id?: string; roles: readonly string[] }
  | { kind: 'anonymous' }

const defaultBusiness = 'default'
/** In place of a business, where a list can have those of all. */
export const allBusinesses = '*'

/** Finds the caller of a request, by its bearer token or another one. Throws `unauthorized`; with auth off `forbidden` for a host that is not localhost. */
export type Authenticate = (request: FastifyRequest, token?: string) => Promise<Principal>

/** Authentication by bearer token. Without an admin token no caller is admin. */
export const createAuthenticate = (
  runtime: Pick<Runtime, 'authenticate' | 'authenticateOperator'>,
  auth: 'required' | 'off',
  adminToken: string | null | undefined,
  corsOrigins: readonly string[] = [],
): Authenticate => {
  const isAdmin = createTokenCheck(adminToken)
  return async (request, given) => {
    if (auth === 'off') {
      checkLocalHost(request)
      checkForeignPage(request, corsOrigins)
      return { kind: 'anonymous' }
    }
    const token = given ?? readBearerToken(request.headers.authorization)
    if (isAdmin(token)) return { kind: 'admin' }
    const operator = await runtime.authenticateOperator(token)
    if (operator) return { kind: 'admin', operator }
    const owner = await runtime.authenticate(token)
    if (!owner)
      throw new MasonError('unauthorized', 'the token is unknown or was revoked', {
        remedy: 'ask the operator of this server for a token of your business',
      })
    return { kind: 'token', ...owner }
  }
}

/** Undefined where the header has none. */
export const findBearerToken = (header: string | undefined): string | undefined =>
  /^Bearer +([^\s]{1,4096}) *$/i.exec(header ?? '')?.[1]

const readBearerToken = (header: string | undefined): string => {
  const token = findBearerToken(header)
  if (token) return token
  throw new MasonError('unauthorized', 'there is no bearer token', {
    remedy: 'send the header "Authorization: Bearer <token>"',
  })
}

/** Compares hashes in constant time, so that neither content nor length of the admin token shows. */
const createTokenCheck = (expected: string | null | undefined): ((token: string) => boolean) => {
  if (!expected) return () => false
  const hash = (text: string) => createHash('sha256').update(text).digest()
  const expectedHash = hash(expected)
  return (token) => timingSafeEqual(hash(token), expectedHash)
}

const hostAndPort = /^([\w.-]{1,255}|\[[\da-f:.]{2,45}\])(:\d{1,5})?$/i

/** One Host header, of a host and a port alone; a request of HTTP/1.0 may have none: https://www.rfc-editor.org/rfc/rfc9112#section-3.2 */
export const checkHost = ({ raw: { rawHeaders, httpVersion } }: FastifyRequest): void => {
  const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host')
  const isThere = hosts.length === 1 || (hosts.length === 0 && httpVersion === '1.0')
  if (isThere && hosts.every((host) => hostAndPort.test(host))) return
  throw new HttpError(
    'malformed_request',
    'the Host header must be there once, with a host and at most a port',
  )
}

/** Without auth only this machine may call: a web page whose name resolves here (DNS rebinding) sends its own host. */
const checkLocalHost = ({ headers }: FastifyRequest): void => {
  if (isLocalHost(headers.host)) return
  throw new MasonError('forbidden', 'with auth off only localhost may be called', {
    remedy: 'call 127.0.0.1 or localhost, or set MASON_AUTH=required',
  })
}

const localHost =
  /^(([a-z0-9-]{1,63}\.){0,8}localhost|127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\])(:\d{1,5})?$/i

/** Of the Host header itself: what a proxy says of another one does not count. A request without one is of no browser. */
export const isLocalHost = (host = 'localhost'): boolean => localHost.test(host)

/**
 * Without auth a page of another origin must neither read nor change anything, unless `corsOrigins` names it. Browsers say where
 * a request comes from; of one that does not say, JSON counts as allowed: every browser asks before a page sends it elsewhere.
 */
const checkForeignPage = ({ method, headers }: FastifyRequest, corsOrigins: readonly string[]): void => {
  const { origin, host, 'sec-fetch-site': site = 'none' } = headers
  if (origin !== undefined && corsOrigins.includes(origin)) return
  const isOwnOrigin = origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)
  const isHarmless = isRead(method) || isJson(headers['content-type'])
  if (['same-origin', 'none'].includes(String(site)) && (isOwnOrigin || isHarmless)) return
  throw new MasonError('forbidden', 'with auth off, pages of other origins may not call', {
    remedy: 'name the origin in MASON_CORS_ORIGINS, or set MASON_AUTH=required',
  })
}

/** Whether a method changes nothing. */
export const isRead = (method: string): boolean => ['GET', 'HEAD', 'OPTIONS'].includes(method)

/** Whether this content type is JSON, which no page sends to another origin unasked. */
export const isJson = (type = ''): boolean => /^\s*application\/([\w.+-]{1,100}\+)?json\s*(;|$)/i.test(type)

/** Throws `forbidden` when the caller does not have the role. */
export const checkRole = (principal: Principal, role: Exclude<RequiredRole, null>): void => {
  if (principal.kind !== 'token') return
  if (role === 'operator')
    throw new MasonError('forbidden', 'only the admin token may do this', { remedy: 'use MASON_ADMIN_TOKEN' })
  if (principal.roles.includes(role) || principal.roles.includes('admin')) return
  throw new MasonError('forbidden', `the token has no role "${role}"`, {
    remedy: `use a token with this role: mason tokens create --business ${principal.business_id} --name NAME --role ${role}`,
  })
}

/** The business that a validated request is about. Throws `forbidden` for another one than the caller's. */
export const resolveBusinessId = (principal: Principal, query: unknown, body: unknown): string => {
  const named = [body, query].map(readBusinessId).filter((id) => id !== undefined)
  if (named.length === 2 && named[0] !== named[1])
    throw createFieldsError({
      pointer: '/business_id',
      detail: 'body and query name different businesses',
    })
  const requested = named[0]
  // what a list of all businesses reads, its route decides
  if (principal.kind === 'admin')
    return requested === undefined || requested === allBusinesses ? defaultBusiness : requested
  const own = principal.kind === 'token' ? principal.business_id : defaultBusiness
  if (requested === undefined || requested === own) return own
  throw new MasonError('forbidden', 'this business_id is not the one of the token', {
    remedy: 'leave business_id out, or use a token of that business',
  })
}

/** See `RouteServer`. */
export const readCaller: RouteServer['callerOf'] = ({ principal, query, body }, named) => {
  const caller: Principal = principal ?? { kind: 'anonymous' }
  return {
    kind: caller.kind,
    business_id: named ? resolveBusinessId(caller, named, null) : resolveBusinessId(caller, query, body),
    token_id: caller.kind === 'token' ? (caller.token_id ?? null) : null,
  }
}

const readBusinessId = (part: unknown): string | undefined => {
  const id = (part as { business_id?: unknown } | null | undefined)?.business_id
  return typeof id === 'string' ? id : undefined
}
