import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Runtime } from '../runtime-api.ts'
import { MasonError } from '../state/errors.ts'
import { invalidRequest } from './check-request.ts'
import type { Role } from './route.ts'

/** Who calls. The admin acts for any business, a token for its own, and with auth off all is `default`. */
export type Caller =
  | { kind: 'admin' }
  | { kind: 'token'; business_id: string; roles: readonly string[] }
  | { kind: 'anyone' }

const defaultBusiness = 'default'

export type Authenticate = (request: FastifyRequest) => Promise<Caller>

/** How requests are told apart. Throws `unauthorized`; with auth off `forbidden` for a browser led here by a foreign name. */
export const createAuthenticate = (
  runtime: Pick<Runtime, 'authenticate'>,
  auth: 'required' | 'off',
  adminToken: string | null | undefined,
): Authenticate => {
  const isAdmin = createTokenCheck(adminToken)
  return async (request) => {
    if (auth === 'off') {
      refuseForeignHost(request)
      return { kind: 'anyone' }
    }
    const token = bearerToken(request.headers.authorization)
    if (isAdmin(token)) return { kind: 'admin' }
    const known = await runtime.authenticate(token)
    if (!known)
      throw new MasonError('unauthorized', 'the token is unknown or was revoked', {
        remedy: 'ask the operator of this server for a token of your business',
      })
    return { kind: 'token', ...known }
  }
}

const bearerToken = (header: string | undefined): string => {
  const token = /^Bearer +([^\s]{1,4096}) *$/i.exec(header ?? '')?.[1]
  if (token) return token
  throw new MasonError('unauthorized', 'there is no bearer token', {
    remedy: 'send the header "Authorization: Bearer <token>"',
  })
}

/** Compares hashes in constant time, so that neither content nor length of the admin token shows. */
const createTokenCheck = (wanted: string | null | undefined): ((token: string) => boolean) => {
  if (!wanted) return () => false
  const hash = (text: string) => createHash('sha256').update(text).digest()
  const wantedHash = hash(wanted)
  return (token) => timingSafeEqual(hash(token), wantedHash)
}

/** Without auth only this machine may call: a web page whose name resolves here (DNS rebinding) sends its own host. */
const refuseForeignHost = ({ hostname }: FastifyRequest): void => {
  if (/^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\]|)$/i.test(hostname)) return
  throw new MasonError('forbidden', 'with auth off only localhost may be called', {
    remedy: 'call 127.0.0.1 or localhost, or set MASON_AUTH=required',
  })
}

/** Throws `forbidden` when the caller may not do this kind of thing. */
export const checkRole = (caller: Caller, role: Exclude<Role, null>): void => {
  if (caller.kind !== 'token') return
  if (role === 'operator')
    throw new MasonError('forbidden', 'only the admin token may do this', { remedy: 'use MASON_ADMIN_TOKEN' })
  if (caller.roles.includes(role) || caller.roles.includes('admin')) return
  throw new MasonError('forbidden', `the token has no role "${role}"`, {
    remedy: `use a token with the role "${role}"`,
  })
}

/** The business a checked request is about. Throws `forbidden` for another one than the caller's. */
export const businessOf = (caller: Caller, query: unknown, body: unknown): string => {
  const named = [body, query].map(businessIn).filter((id) => id !== undefined)
  if (named.length === 2 && named[0] !== named[1])
    throw invalidRequest([{ pointer: '/business_id', detail: 'body and query name different businesses' }])
  const wanted = named[0]
  if (caller.kind === 'admin') return wanted ?? defaultBusiness
  const own = caller.kind === 'token' ? caller.business_id : defaultBusiness
  if (wanted === undefined || wanted === own) return own
  throw new MasonError('forbidden', 'this business_id is not the one of the token', {
    remedy: 'leave business_id out, or use a token of that business',
  })
}

const businessIn = (part: unknown): string | undefined => {
  const id = (part as { business_id?: unknown } | null | undefined)?.business_id
  return typeof id === 'string' ? id : undefined
}
