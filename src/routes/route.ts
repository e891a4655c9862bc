import type { IncomingMessage, ServerResponse } from 'node:http'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RawServerDefault,
} from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { ZodType } from 'zod'
import type { TokenRole } from '../accounts/account-schemas.ts'
import type { RunEntry } from '../state/ports/tracer.ts'
import type { ProblemCode } from './problems.ts'

/**
 * What a token must be allowed to do. The role `admin` includes all of its business; `operator` is the admin token only;
 * null needs no token.
 */
export type RequiredRole = Exclude<TokenRole, 'admin'> | 'operator' | null

/** A success response of a route. `type` is application/json unless it is set. */
export type SuccessResponse = {
  description: string
  schema?: ZodType
  type?: string
  /** What each event holds where the client asks for a stream instead. */
  events?: ZodType
  /** Descriptions of headers, by name. */
  headers?: Record<string, string>
}

/**
 * The one success response of a route.
 *
 * @example
 * ```ts
 * import { respondsWith } from 'mason-runtime/features'
 * import { z } from 'zod'
 *
 * const counted = respondsWith(200, 'How many', z.strictObject({ count: z.int() }))
 * ```
 */
export const respondsWith = (
  status: number,
  description: string,
  schema?: ZodType,
  headers?: Readonly<Record<string, string>>,
): Pick<RouteDoc, 'responses'> => ({
  responses: { [status]: { description, ...(schema && { schema }), ...(headers && { headers }) } },
})

/** The documentation of a route: authentication, validation and /openapi.json all read it here. */
export type RouteDoc = {
  /** The operation id, unique among all routes. */
  id: string
  tag: string
  summary: string
  description?: string
  role: RequiredRole
  /** Success responses by status. */
  responses: Record<number, SuccessResponse>
  /** Problems of its own, beside those of every route and those that follow from its body and path. */
  problems?: ProblemCode[]
  /** The body of every error response, where it is no problem of RFC 9457. */
  errorBody?: ZodType
  /** An absent body means `{}`. */
  bodyOptional?: boolean
  /** So many values its body may have; absent: 50,000. */
  maxValues?: number
  /**
   * Its numbers, or that of the member of this name, stay numbers, such as those of JSON Schemas. Else an integer from 2^53 on is
   * the text of its digits.
   */
  passesNumbers?: boolean | string
  /** The body is a form with files, in place of JSON. */
  form?: boolean
  /** The body is bytes of any type, which the handler reads in chunks; `request.body` is undefined where there is none. */
  streamed?: boolean
}

/**
 * Documents the routes of one tag.
 *
 * @example
 * ```ts
 * import { createDocs, respondsWith } from 'mason-runtime/features'
 *
 * const docs = createDocs('announcements')
 * const config = docs('read', 'countAnnouncements', 'Counts announcements', respondsWith(204, 'Counted'))
 * ```
 */
export const createDocs =
  (tag: string) =>
  (
    role: RequiredRole,
    id: string,
    summary: string,
    more: Omit<RouteDoc, 'tag' | 'role' | 'id' | 'summary'>,
  ): { doc: RouteDoc } => ({ doc: { tag, role, id, summary, ...more } })

declare module 'fastify' {
  interface FastifyContextConfig {
    doc?: RouteDoc
  }
}

/** The fastify app whose handlers get values typed by their zod schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>

/** What a route knows of the server. */
export type RouteServer = {
  open: {
    /** Aborts when the client disconnects or the server closes. Call `release` when the work is done. */
    abortSignal(response: ServerResponse): { signal: AbortSignal; release(): void }
    /** Whether the server is closing. */
    readonly closing: boolean
  }
  /** Between two comments on a stream of events. */
  keepAliveMs: number
  /** How long a call of the OpenAI-compatible endpoint waits between its tries, in all. */
  maxWaitMs: number
  /**
   * The business that a request acts for, as `named`, else its query and body, name it, and its token, if it has one of a business.
   * Throws `forbidden` for another business than the caller's.
   */
  callerOf(
    request: FastifyRequest,
    named?: { business_id: string },
  ): { kind: 'admin' | 'token' | 'anonymous'; business_id: string; token_id: string | null }
  /** Where a run that a request starts came from, for its trace. */
  toEntry(request: FastifyRequest, reply: FastifyReply): RunEntry
  /** Sends the problem of an error, for a route whose error handler has no other answer. */
  sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void
  /** Takes over the reply for a stream of events, which ends with the rights of its caller. */
  startStream(reply: FastifyReply): ServerResponse
  /** Sends server-sent events that are formatted, until they end, the client disconnects or the server closes. */
  sendTexts(reply: FastifyReply, events: (signal: AbortSignal) => AsyncIterable<string>): Promise<void>
}
