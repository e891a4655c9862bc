import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { HttpError } from '../../../routes/problems.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Runtime } from '../../api.ts'
import type { SessionCaller } from '../../console-sessions.ts'
import { isJson, isLocalHost, isRead, type Principal } from './auth.ts'

/** For the checks of open streams, of which one session may have many. */
const recentMs = 500

/** The cookie of the console: what it is called, when it counts, and who has it. */
export type SignIn = ReturnType<typeof createSignIn>

/**
 * Sign-in by cookie. Browsers say where a request comes from (`Sec-Fetch-Site`) on https and on this machine only, so there is
 * none elsewhere. `https` follows from the public address alone: behind a proxy the Host header may be any.
 */
export const createSignIn = (
  { publicOrigin, admin }: Pick<Runtime, 'publicOrigin' | 'admin'>,
  adminToken: string | null | undefined,
) => {
  const { consoleSessions } = admin
  const isHttps = publicOrigin.startsWith('https:')
  const recent = new LRUCache<string, Promise<SessionCaller>>({ max: 10_000, ttl: recentMs })

  const findCaller = async (secret: string): Promise<SessionCaller> => {
    const caller = await consoleSessions.find(secret, adminToken ?? null)
    if (caller) return caller
    throw new MasonError('unauthorized', 'you are not signed in any more', { remedy: 'sign in again' })
  }
  const cookieName = async (): Promise<string> =>
    `${isHttps ? '__Host-' : ''}${await consoleSessions.cookieName()}`

  const signIn = {
    /** Why sign-in is not possible at the address of this request; null where they can. */
    findProblem({ headers }: FastifyRequest): { detail: string; remedy: string } | null {
      if (isHttps || (headers.host && isLocalHost(headers.host))) return null
      return {
        detail: 'at this address browsers do not say which page sent a request, so sign-in is not possible',
        remedy:
          'open the console at the https address of this server, which MASON_PUBLIC_URL names, or at http://localhost on its machine',
      }
    },
    /** Throws `forbidden` for a request that no page of this very origin sent, and 415 for a write that is not JSON. */
    checkOrigin({ method, headers }: FastifyRequest): void {
      if (headers['sec-fetch-site'] !== 'same-origin')
        throw new MasonError('forbidden', 'this request does not come from a page of this server', {
          remedy: 'send it from the console, or send "Authorization: Bearer <token>"',
        })
      if (!isRead(method) && !isJson(headers['content-type']))
        throw new HttpError('unsupported_media_type', 'with the cookie of the console a write must be JSON', {
          remedy: 'send "content-type: application/json"',
        })
    },
    /**
     * The secret in the cookie of this request; null where it has none, or says who it is by Authorization. Two cookies of one
     * name count as none: one of them is not ours.
     */
    async findSecret(request: FastifyRequest): Promise<string | null> {
      const { authorization, cookie } = request.headers
      if (authorization !== undefined || cookie === undefined || signIn.findProblem(request)) return null
      const prefix = `${await cookieName()}=`
      const values = cookie
        .split(';')
        .map((part) => part.trim())
        .filter((part) => part.startsWith(prefix))
      return values.length === 1 ? (values[0] as string).slice(prefix.length) : null
    },
    /** Who has this secret. Throws as `checkOrigin`, and `unauthorized` where the session has ended. */
    async authenticate(request: FastifyRequest, secret: string): Promise<SessionCaller> {
      signIn.checkOrigin(request)
      return findCaller(secret)
    },
    /** As `authenticate`, at most half a second old, for a request that was let in before. */
    checkAgain(secret: string): Promise<SessionCaller> {
      const known = recent.get(secret)
      if (known) return known
      const caller = findCaller(secret)
      recent.set(secret, caller)
      caller.catch(() => recent.delete(secret))
      return caller
    },
    /** The Set-Cookie header with this secret; null removes the cookie. */
    async toCookie(secret: string | null): Promise<string> {
      const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict']
      if (isHttps) attributes.push('Secure')
      if (secret === null) attributes.push('Max-Age=0')
      return [`${await cookieName()}=${secret ?? ''}`, ...attributes].join('; ')
    },
  }
  return signIn
}

/** What a session may do, as any other caller. */
export const toPrincipal = (caller: SessionCaller): Principal => {
  if (caller.kind === 'admin') return { kind: 'admin' }
  const { token_id, label } = caller
  if (caller.kind === 'operator') return { kind: 'admin', operator: { token_id, label } }
  return { kind: 'token', business_id: caller.business_id, token_id, roles: caller.roles }
}
