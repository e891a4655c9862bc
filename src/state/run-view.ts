import { z } from 'zod'
import { truncatedSchema } from './resource-schema.ts'
import { actionSchema, outputFieldSchema, todoSchema, usageSchema } from './runtime-state.ts'

/** What the API returns of runs, sessions and events. CONTRACT sections 3 and 4. Times are ISO, UTC. */

/** The status of a run. */
export const runStatusSchema = z.enum([
  'queued',
  'running',
  'input_required',
  'completed',
  'failed',
  'cancelled',
])

/** Why a run is completed. */
export const finishReasons = [
  'answered',
  'length',
  'content_filter',
  'unknown',
  'steps',
  'tokens',
  'cost',
  'time',
  'no_progress',
] as const

/** A run as submitting it answers. */
export const admittedRunSchema = z.strictObject({
  id: z.string(),
  session_id: z.string(),
  turn: z.int(),
  status: runStatusSchema,
})

/** An open question to a person. */
export const inputRequestSchema = z.strictObject({
  id: z.string(),
  question: z.string(),
  /** JSON Schema of the answer. */
  schema: z.record(z.string(), z.json()),
  options: z.array(z.string()),
  expires_at: z.string(),
  /** The answer is a password: show none of it. */
  secret: z.literal(true).exactOptional(),
})

/** Where a question stands. `closed`: its run ended without an answer. */
export const inputRequestStatusSchema = z.enum(['open', 'answered', 'expired', 'closed'])
/** A question as the list of questions shows it. */
export const inputRequestViewSchema = inputRequestSchema.extend({
  run_id: z.string(),
  session_id: z.string(),
  user_id: z.string(),
  status: inputRequestStatusSchema,
  created_at: z.string(),
  answered_at: z.string().nullable(),
  truncated: truncatedSchema,
})

/** A payment that waits for the approval of a person: the proxy asks for a link to the page, or signs by its own surface. */
const consentRequestSchema = z.strictObject({ payment_id: z.string(), expires_at: z.string() })

/** A side effect whose outcome is unknown, and why: an operator settles it. */
const operatorRequestSchema = z.strictObject({ effect_id: z.string(), error: z.string() })

const retryReasonSchema = z.strictObject({ code: z.string(), message: z.string() })

/** A run as the API shows it. */
export const runViewSchema = z.strictObject({
  id: z.string(),
  session_id: z.string(),
  business_id: z.string(),
  user_id: z.string(),
  turn: z.int(),
  prompt: z.string(),
  status: runStatusSchema,
  finish_reason: z.enum(finishReasons).nullable(),
  answer: z.string().nullable(),
  output_structure: z.array(outputFieldSchema),
  /** Fields that never had a valid content. */
  output_errors: z.array(z.strictObject({ id: z.string(), error: z.string() })),
  /** How many todos there are of each status. */
  todos: z.strictObject({ pending: z.int(), processing: z.int(), completed: z.int(), failed: z.int() }),
  /** What an ended run left neither completed nor failed, and why. */
  open_todos: z.array(z.strictObject({ id: z.string(), reason: z.string() })),
  usage: usageSchema,
  error: z
    .strictObject({
      code: z.string(),
      message: z.string(),
      node: z.string().optional(),
      detail: z.json().optional(),
    })
    .nullable(),
  input_request: inputRequestSchema.nullable(),
  consent_request: consentRequestSchema.nullable(),
  operator_request: operatorRequestSchema.nullable(),
  /** When a run that waits for a model is tried again, and the error of its last try; null when it does not wait. */
  retry_at: z.string().nullable(),
  retry_reason: retryReasonSchema.nullable(),
  /** The run that this one repeats: one that failed, or one that was run again in another session. */
  retry_of: z.string().nullable(),
  metadata: z.record(z.string(), z.json()),
  created_at: z.string(),
  started_at: z.string().nullable(),
  ended_at: z.string().nullable(),
  truncated: truncatedSchema,
})

/** A session as the API shows it. */
export const sessionViewSchema = z.strictObject({
  id: z.string(),
  user_id: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  turns: z.array(
    z.strictObject({
      turn: z.int(),
      run_id: z.string(),
      status: runStatusSchema,
      prompt: z.string(),
      goal: z.string(),
      answer: z.string().nullable(),
      usage: usageSchema,
      truncated: truncatedSchema,
    }),
  ),
  truncated: truncatedSchema,
})

/** The data of the SSE event `action`. */
export const actionEventSchema = actionSchema.extend({
  run_id: z.string(),
  turn: z.int(),
  at: z.string().describe('When it was committed'),
  started_at: z.string().nullable().describe('When its visit began; null: no worker appended it'),
  ms: z.int().nullable().describe('Milliseconds from there to the commit'),
  attempt: z
    .int()
    .nullable()
    .describe(
      'Which claim of the run it was committed under, from 1: it grows with each worker that takes the run',
    ),
  worker: z.string().nullable().describe('The worker that appended it'),
})
/** One request to a vendor, made during a visit. */
const modelCallSchema = z.strictObject({
  at: z.string().describe('When it was entered into the ledger'),
  role: z.string(),
  model: z.string().describe('The alias'),
  vendor: z.string().nullable().describe('Its name; null: it was deleted'),
  status: z.enum(['succeeded', 'failed', 'aborted', 'lost']),
  error_code: z.string().nullable(),
  ms: z.int(),
  tokens: z.int(),
  cost: z.number().describe('In units of `currency`'),
  currency: z.string().nullable().describe('Null: the model has no prices'),
})
/** An action as the list of a session's actions shows it. */
export const actionViewSchema = actionEventSchema.extend({
  model_calls: z.array(modelCallSchema).describe('In their order; they are entered shortly after the commit'),
})
const promptMessageSchema = z.strictObject({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string(),
  images: z
    .array(z.strictObject({ mime_type: z.string(), bytes: z.int() }))
    .describe('Before the text, without their bytes')
    .optional(),
  tool_calls: z.array(z.strictObject({ id: z.string(), name: z.string(), arguments: z.string() })).optional(),
  reasoning: z.strictObject({ text: z.string(), by: z.string() }).optional(),
  tool_call_id: z.string().optional(),
})
/** What an action sent to a model first: a page of its messages. */
export const actionPromptSchema = z.strictObject({
  action: z.int(),
  run_id: z.string(),
  node: z.string(),
  role: z.string().describe('The role that the model was called for'),
  model: z.string().nullable().describe('The alias that was named; null: the role decided'),
  origin: z
    .enum(['as_sent', 'rebuilt_differs', 'rebuilt'])
    .describe('Whether what is rebuilt is what was sent; `rebuilt`: its hash was not stored'),
  sha256: z.string().nullable().describe('Of the messages as they were sent, as JSON'),
  rebuilt_sha256: z.string().describe('Of the messages here, all of them'),
  messages: z.array(promptMessageSchema),
  total: z.int().describe('How many messages there are'),
  has_more: z.boolean(),
})
/** The data of the SSE event `status`. The last three are there while the run waits for a model, or for an operator. */
export const statusEventSchema = z.strictObject({
  run_id: z.string(),
  turn: z.int(),
  status: runStatusSchema,
  retry_at: z.string().nullable().exactOptional(),
  retry_reason: retryReasonSchema.nullable().exactOptional(),
  operator_request: operatorRequestSchema.exactOptional(),
})
/** The data of the SSE event `todos`. */
export const todosEventSchema = z.strictObject({
  run_id: z.string(),
  turn: z.int(),
  todos: z.array(todoSchema),
})
/** The data of the SSE event `input_required`. */
export const inputEventSchema = inputRequestSchema.extend({ run_id: z.string() })
/** The data of the SSE event `consent_required`. */
export const consentEventSchema = consentRequestSchema.extend({ run_id: z.string() })
/** The data of the SSE event `delta`. */
export const deltaSchema = z.strictObject({
  run_id: z.string(),
  node: z.string(),
  call: z.int().nullable(),
  attempt: z.int().positive(),
  text: z.string(),
})

const actionId = z.int().describe('The id of the action')
const latestId = z.int().describe('The id of the latest action, 0 before any')

/** An event of a stream; `id` is the action's, absent where an event has none of its own. */
export const runEventSchema = z
  .discriminatedUnion('event', [
    z.strictObject({ event: z.literal('action'), id: actionId, data: actionEventSchema }),
    z.strictObject({ event: z.literal('status'), id: latestId, data: statusEventSchema }),
    z.strictObject({ event: z.literal('todos'), id: latestId, data: todosEventSchema }),
    z.strictObject({ event: z.literal('input_required'), id: latestId, data: inputEventSchema }),
    z.strictObject({ event: z.literal('consent_required'), id: latestId, data: consentEventSchema }),
    z.strictObject({ event: z.literal('delta'), data: deltaSchema }),
    z.strictObject({ event: z.literal('done'), data: runViewSchema }),
  ])
  .describe('One server-sent event: its name, its id, and its data, which is sent as JSON')

/** An event of the stream of a business; `id` is a position to resume at. */
export const runChangeSchema = z
  .discriminatedUnion('event', [
    z.strictObject({
      event: z.literal('ready'),
      id: z.int(),
      data: z.strictObject({
        reset: z.boolean().describe('Whether changes since Last-Event-ID may be lost: load the lists again'),
      }),
    }),
    z.strictObject({
      event: z.literal('run'),
      id: z.int().optional(),
      data: z.strictObject({
        run_id: z.string(),
        session_id: z.string(),
        status: runStatusSchema,
        at: z.string().describe('When it changed'),
      }),
    }),
  ])
  .describe('One server-sent event: its name, its id, and its data, which is sent as JSON')
/** See `runChangeSchema`. */
export type RunChange = z.infer<typeof runChangeSchema>

/** The status of a run. */
export type RunStatus = z.infer<typeof runStatusSchema>
/**
 * A run as the API shows it: its status, its answer or error, and what it used.
 *
 * @example
 * ```ts
 * import type { RunView } from 'mason-runtime'
 *
 * const describe = (run: RunView): string =>
 *   run.status === 'failed' ? `failed: ${run.error?.message}` : (run.answer ?? run.status)
 * ```
 */
export type RunView = z.infer<typeof runViewSchema>
/**
 * A session as the API shows it, with its turns in order.
 *
 * @example
 * ```ts
 * import type { SessionView } from 'mason-runtime'
 *
 * const lastAnswer = (session: SessionView): string | null => session.turns.at(-1)?.answer ?? null
 * ```
 */
export type SessionView = z.infer<typeof sessionViewSchema>
/** See `inputRequestStatusSchema`. */
export type InputRequestStatus = z.infer<typeof inputRequestStatusSchema>
/** A question with its run and user. */
export type InputRequestView = z.infer<typeof inputRequestViewSchema>
/** An action with its times and its model calls. */
export type ActionView = z.infer<typeof actionViewSchema>
/** What an action sent to a model first. */
export type ActionPrompt = z.infer<typeof actionPromptSchema>
/** The data of the SSE event `action`. */
export type ActionEvent = z.infer<typeof actionEventSchema>
/** A piece of streamed text. */
export type TextDelta = z.infer<typeof deltaSchema>
/** What an item of a list has beside its own fields. */
export type Listed = { truncated?: z.infer<typeof truncatedSchema> }
/** One page of runs. */
export type RunPage = Page<RunView> & {
  /** How far the list was looked through, where that took a second; null: not at all. Absent: as far as the page needs. */
  searched_to?: string | null
  /** How many there are, where that was asked; null: counting took too long. */
  count?: number | null
  /** Whether there are more. */
  count_capped?: boolean
}
/** One page of a list; `next_cursor` is null on the last one. */
export type Page<Item> = { data: (Item & Listed)[]; next_cursor: string | null }

/**
 * Events as they go out; `id` is the action's, absent where an event has none of its own.
 *
 * @example
 * ```ts
 * import type { RunEvent } from 'mason-runtime'
 *
 * const print = (event: RunEvent): void => {
 *   if (event.event === 'delta') process.stdout.write(event.data.text)
 *   if (event.event === 'done') console.log(event.data.answer)
 * }
 * ```
 */
export type RunEvent = z.infer<typeof runEventSchema>
