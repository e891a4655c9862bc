import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type App, createDocs, respondsWith } from '../../../routes/route.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Runtime } from '../../api.ts'
import type { SessionCaller, SessionOwner } from '../../console-sessions.ts'
import { type Authenticate, findBearerToken, type Principal } from '../plumbing/auth.ts'
import type { FailedTokens } from '../plumbing/failed-tokens.ts'
import type { SignIn } from '../plumbing/sign-in.ts'

const describe = createDocs('console')

const signInSchema = z
  .strictObject({
    token: z
      .string()
      .min(1)
      .max(4096)
      .describe('A token of a business or an operator, or the admin token')
      .optional(),
    code: z.string().min(1).max(200).describe('What `mason console` made').optional(),
  })
  .refine(({ token, code }) => (token === undefined) !== (code === undefined), {
    path: ['token'],
    error: 'send a token or a code',
  })
  .meta({ examples: [{ token: 'mason_…' }] })

const problemSchema = z
  .strictObject({ detail: z.string(), remedy: z.string() })
  .meta({ description: 'Why sign-in is not possible at this address' })

const sessionSchema = z
  .strictObject({
    auth: z
      .enum(['required', 'off'])
      .describe('off: every client that reaches this server may do everything'),
    signed_in: z.boolean(),
    problem: problemSchema.nullable(),
    admin: z.boolean().describe('May use /admin/v1'),
    roles: z.array(z.string()).describe('What the token may do now'),
    businesses: z.array(z.string()).nullable().describe('Whose data it may see; null: of any business'),
    token: z
      .strictObject({ id: z.string().nullable(), label: z.string() })
      .nullable()
      .describe('id null: the admin token of the settings'),
    expires_at: z.string().nullable(),
  })
  .meta({ description: 'Who is signed in to the console' })

type SessionView = z.infer<typeof sessionSchema>

const codeSchema = z.strictObject({
  code: z.string().describe('A secret: good once, for a minute'),
  expires_at: z.string(),
})

/** Sign-in to the console: a token, or a code of `mason console`, is exchanged for a session in a cookie. */
export const consoleSessionRoutes = (
  app: App,
  { admin: { consoleSessions } }: Runtime,
  options: {
    auth: 'required' | 'off'
    adminToken: string | null
    signIn: SignIn
    failures: FailedTokens
    /** Of tokens, each failed one counted. */
    authenticate: Authenticate
    /** The same without counting. */
    checkToken: Authenticate
  },
): void => {
  const { auth, adminToken, signIn, failures, authenticate, checkToken } = options

  const sendView = async (
    request: FastifyRequest,
    reply: FastifyReply,
    caller: SessionCaller | null,
  ): Promise<FastifyReply> =>
    reply.header('cache-control', 'no-store').send({
      auth,
      signed_in: caller !== null || auth === 'off',
      problem: auth === 'off' ? null : signIn.findProblem(request),
      ...(auth === 'off' ? whenOff : caller ? toView(caller) : signedOut),
    } satisfies SessionView)

  const toOwner = (principal: Principal): SessionOwner => {
    if (principal.kind === 'admin' && principal.operator) return { token_id: principal.operator.token_id }
    if (principal.kind === 'admin' && adminToken !== null) return { admin_token: adminToken }
    if (principal.kind === 'token' && principal.token_id !== undefined)
      return { token_id: principal.token_id }
    throw new MasonError('forbidden', 'auth is off: there is nothing to sign in to', {
      remedy: 'open the console without signing in, or set MASON_AUTH=required',
    })
  }

  app.get('/console/session', {
    config: describe(null, 'getConsoleSession', 'Returns who is signed in to the console', {
      description: 'By the cookie of the console, from a page of this server only. Without it: no one is.',
      ...respondsWith(200, 'Who is signed in, and what they may do now', sessionSchema),
      problems: ['forbidden', 'database_unavailable'],
    }),
    handler: async (request, reply) => {
      const secret = auth === 'off' ? null : await signIn.findSecret(request)
      if (secret === null) return sendView(request, reply, null)
      signIn.checkOrigin(request)
      return sendView(request, reply, await consoleSessions.find(secret, adminToken))
    },
  })

  app.post('/console/session', {
    schema: { body: signInSchema },
    config: describe(null, 'createConsoleSession', 'Signs in to the console', {
      description:
        'From a page of this server only. The cookie holds a secret of 8 hours, never the token. A session that the browser had ends.',
      ...respondsWith(200, 'Who is signed in, and what they may do now', sessionSchema),
      problems: ['unauthorized', 'forbidden', 'too_many_requests', 'database_unavailable'],
    }),
    handler: async (request, reply) => {
      const { token, code } = request.body
      const problem = signIn.findProblem(request)
      if (problem) throw new MasonError('forbidden', problem.detail, { remedy: problem.remedy })
      signIn.checkOrigin(request)
      const owner = await failures.guard(request, token ?? (code as string), async () =>
        token === undefined ? readCode(code as string) : toOwner(await checkToken(request, token)),
      )
      const before = await signIn.findSecret(request)
      if (before !== null) await consoleSessions.end(before)
      const { secret } = await consoleSessions.create('session', owner)
      reply.header('set-cookie', await signIn.toCookie(secret))
      return sendView(request, reply, await consoleSessions.find(secret, adminToken))
    },
  })

  const readCode = async (code: string): Promise<SessionOwner> => {
    const caller = await consoleSessions.useCode(code, adminToken)
    if (caller && caller.kind !== 'admin') return { token_id: caller.token_id }
    if (caller && adminToken !== null) return { admin_token: adminToken }
    throw new MasonError('unauthorized', 'this code was used, has expired, or is none', {
      remedy: 'run `mason console` again: a code is good once, for a minute',
    })
  }

  app.delete('/console/session', {
    config: describe(null, 'deleteConsoleSession', 'Signs out of the console', {
      description: 'The session ends everywhere at once, its open streams within 2 s.',
      responses: { 204: { description: 'No one is signed in by this cookie' } },
      problems: ['forbidden', 'unsupported_media_type', 'database_unavailable'],
    }),
    handler: async (request, reply) => {
      const secret = await signIn.findSecret(request)
      if (secret !== null) {
        signIn.checkOrigin(request)
        await consoleSessions.end(secret)
        reply.header('set-cookie', await signIn.toCookie(null))
      }
      return reply.code(204).header('cache-control', 'no-store').send()
    },
  })

  app.post('/console/codes', {
    config: describe(null, 'createConsoleCode', 'Creates a code that signs in to the console once', {
      description: 'For `mason console`, with any bearer token, never with the cookie.',
      ...respondsWith(201, 'The code', codeSchema),
      problems: ['unauthorized', 'forbidden', 'too_many_requests', 'database_unavailable'],
    }),
    handler: async (request, reply) => {
      const owner = toOwner(await authenticate(request, findBearerToken(request.headers.authorization)))
      const { secret: code, expires_at } = await consoleSessions.create('code', owner)
      return reply
        .code(201)
        .header('cache-control', 'no-store')
        .send({ code, expires_at: expires_at.toISOString() })
    },
  })
}

const signedOut = { admin: false, roles: [], businesses: [], token: null, expires_at: null }
/** Everybody may do everything, for one business. */
const whenOff = { admin: true, roles: ['admin'], businesses: ['default'], token: null, expires_at: null }

const toView = (caller: SessionCaller): Omit<SessionView, 'auth' | 'signed_in' | 'problem'> => {
  const expires_at = caller.expires_at.toISOString()
  if (caller.kind === 'admin')
    return {
      admin: true,
      roles: ['admin'],
      businesses: null,
      expires_at,
      token: { id: null, label: 'the admin token' },
    }
  const { token_id: id, label } = caller
  const token = { id, label }
  if (caller.kind === 'operator')
    return { admin: true, roles: ['admin'], businesses: null, token, expires_at }
  return { admin: false, roles: caller.roles, businesses: [caller.business_id], token, expires_at }
}
