import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { ZodType } from 'zod'
import type { BusinessApi, Runtime } from '../runtime-api.ts'
import type { Caller } from './auth.ts'
import type { OpenReplies } from './open-replies.ts'
import type { ProblemCode } from './problems.ts'

/** What a token must be allowed to do; `admin` may do all of its business. `operator`: only the admin token. Null: no token needed. */
export type Role = 'submit' | 'read' | 'operator' | null

/** One kind of good answer. `type` is application/json unless it says otherwise. */
export type GoodAnswer = {
  description: string
  schema?: ZodType
  type?: string
  headers?: Record<string, string>
}

/** What a route says of itself: auth, checks and /openapi.json all read it here. */
export type RouteDoc = {
  id: string
  tag: string
  summary: string
  description?: string
  role: Role
  answers: Record<number, GoodAnswer>
  /** Problems of its own, beside those of every route. */
  problems?: ProblemCode[]
  /** The body of every refusal, where it is no problem of RFC 9457. */
  errorBody?: ZodType
  /** Whether no body at all stands for `{}`. */
  bodyOptional?: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    doc?: RouteDoc
  }
  interface FastifyRequest {
    caller: Caller | null
    /** On behalf of whom; set before the handler of every route that has a role. */
    business: BusinessApi
  }
}

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>

/** What routes work with. */
export type ServerContext = {
  runtime: Runtime
  open: OpenReplies
  keepAliveMs: number
}
