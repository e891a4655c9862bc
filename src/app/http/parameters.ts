import { z } from 'zod'
import {
  booleanSchema,
  businessQuery,
  createCountSchema,
  createIdParams,
  idempotencyKeySchema,
  metadataPrefix,
  omitUndefined,
  pageQuery,
  parseDigits,
  readSpan,
  runParams,
  type runsQuery,
} from '../../routes/parameters.ts'
import { idSchema } from '../../state/run-request.ts'

/** Schemas of paths, queries and headers that only the routes of this folder have. */

/** Action ids are 32-bit in the database; anything above names no action. */
const maxActionId = 2_147_483_647

/** `-1` is from the start, as LangGraph's clients send it. */
const parsePosition = (value: unknown): unknown => parseDigits(value === '-1' ? '0' : value)
const afterSchema = z.preprocess(
  parsePosition,
  z.int('must be the id of an action, or 0 or -1 for the start').min(0).max(maxActionId),
)
const position = 'The action after which the stream starts; absent, 0 or -1: the first'
/** The id of an action: a positive 32-bit integer. */
export const actionIdSchema = z.int().min(1).max(maxActionId)

/** The path of a session. */
export const sessionParams = createIdParams('session')
/** The path `/{id}/blobs/{sha256}`. */
export const blobParams = runParams.extend({
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits')
    .describe('The hash of the bytes, as a result names it'),
})

/** The path `/{id}/actions/{action}`. */
export const actionParams = sessionParams.extend({
  action: createCountSchema(1, maxActionId).describe('The id of the action'),
})
const queryActionSchema = createCountSchema(0, maxActionId)
/** A page of the actions of a session. */
export const actionsQuery = businessQuery.extend({
  after: queryActionSchema.describe('The first ones after this id').optional(),
  before: queryActionSchema.describe('Without `after`: the last ones before this id').optional(),
  turn: queryActionSchema.describe('Of this turn only').optional(),
  node: z.string().min(1).max(200).describe('Of this node or tool only').optional(),
  limit: createCountSchema(1, 500).describe('Actions of a page, at most').default(100),
})

/** A page of the messages of an action. */
export const promptQuery = businessQuery.extend({
  after: queryActionSchema.describe('Without the first so many messages').default(0),
})

const userIdSchema = idSchema.describe('The user')
/** Everything of one user. */
export const userQuery = businessQuery.extend({ user_id: userIdSchema })
/** A page of memories of a user, or the best matches for `query`. */
export const memoriesQuery = pageQuery.extend({
  user_id: userIdSchema,
  query: z.string().min(1).max(2000).describe('Words that are searched for, by meaning too').optional(),
})
/** The filter that a query describes: what begins with `metadata.` is a member of the metadata. */
export const readRunFilter = ({ business_id: _, ...query }: z.output<typeof runsQuery>) => {
  const names = Object.keys(query).filter((name) => name.startsWith(metadataPrefix))
  const metadata = Object.fromEntries(
    names.map((name) => [name.slice(metadataPrefix.length), String(query[name])]),
  )
  const { limit, cursor, user_id, session_id, status, idempotency_key, finish_reason } = query
  const { error, node, model, q, order, count } = query
  return omitUndefined({
    limit,
    cursor,
    user_id,
    session_id,
    status,
    idempotency_key,
    finish_reason,
    error,
    node,
    model,
    q,
    order,
    count,
    ...readSpan(query),
    ...(names.length > 0 && { metadata }),
  })
}
/** Whether large results are part of a state; true unless it is set. */
export const stateQuery = businessQuery.extend({
  inline: booleanSchema.describe('`false`: large results as {blob, bytes, head}').default(true),
})

/** Of the state of a session, up to an action. */
export const sessionStateQuery = stateQuery.extend({
  action: queryActionSchema
    .describe('The state as this action left it; 0: before any; absent: the latest')
    .optional(),
})

/** The position after which a stream starts. */
export const eventsQuery = businessQuery.extend({ after: afterSchema.describe(position).optional() })
/** The position at which a client reconnects. */
export const eventsHeaders = z.looseObject({
  'last-event-id': z
    .preprocess((value) => (value === '' ? '0' : value), afterSchema)
    .describe(position)
    .optional(),
})

/** The position at which a client of a business's stream reconnects. */
export const changesHeaders = z.looseObject({
  'last-event-id': z
    .preprocess(
      (value) => (value === '' ? undefined : parseDigits(value)),
      z.int('must be the id of an event').min(0).max(Number.MAX_SAFE_INTEGER).optional(),
    )
    .describe('The id of the last event; absent: the stream starts now')
    .optional(),
})

/** The action after which a stream continues: the header wins over the query, neither means from the start. */
export const readPosition = (
  headers: { 'last-event-id'?: unknown },
  query: { after?: number | undefined },
): number => Math.max(0, Number(headers['last-event-id'] || query.after || 0))

/** The headers of submitting a run. */
export const submitHeaders = z.looseObject({
  'idempotency-key': idempotencyKeySchema
    .describe('A key of your own: the same key and body are the same run')
    .optional(),
})
