import { z } from 'zod'
import { businessIdSchema, idSchema } from '../state/run-request.ts'
import { runStatusSchema } from '../state/run-view.ts'

/** What stands in paths, queries and headers. Everything arrives as text; all objects refuse unknown names. */

/** Action ids are 32-bit in the database; anything above names no action. */
const maxActionId = 2_147_483_647

const digits = (value: unknown): unknown =>
  typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value

/** `-1` is from the start, as LangGraph's clients say it. */
const position = (value: unknown): unknown => digits(value === '-1' ? '0' : value)
const afterSchema = z.preprocess(
  position,
  z.int('must be the id of an action, or 0 or -1 for the start').min(0).max(maxActionId),
)
const limitSchema = z
  .preprocess(digits, z.int('must be an integer from 1 to 200').min(1).max(200))
  .default(50)
const cursorSchema = z.string().regex(/^[\x21-\x7e]{1,1000}$/, 'must be the next_cursor of an earlier answer')

export const actionIdSchema = z.int().min(1).max(maxActionId)

export const idParams = z.strictObject({ id: idSchema })
export const blobParams = z.strictObject({
  id: idSchema,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits'),
})

/** Every call may name its business: the admin token acts for it, any other token must be of it. */
export const businessQuery = z.strictObject({ business_id: businessIdSchema.optional() })
/** Of what belongs to no business. */
export const plainPageQuery = z.strictObject({ limit: limitSchema, cursor: cursorSchema.optional() })
const pageQuery = businessQuery.extend(plainPageQuery.shape)

export const sessionsQuery = pageQuery.extend({ user_id: idSchema.optional() })
export const ofUserQuery = businessQuery.extend({ user_id: idSchema })
export const memoriesQuery = pageQuery.extend({
  user_id: idSchema,
  query: z.string().min(1).max(2000).optional(),
})
export const runsQuery = sessionsQuery.extend({
  session_id: idSchema.optional(),
  status: runStatusSchema.optional(),
})
export const stateQuery = businessQuery.extend({
  inline: z
    .preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean())
    .default(true),
})

export const eventsQuery = businessQuery.extend({ after: afterSchema.optional() })
export const eventsHeaders = z.looseObject({
  'last-event-id': z.preprocess((value) => (value === '' ? '0' : value), afterSchema).optional(),
})

/** The action after which a stream goes on: the header beats the query, neither means from the start. */
export const afterOf = (
  headers: { 'last-event-id'?: unknown },
  query: { after?: number | undefined },
): number => Math.max(0, Number(headers['last-event-id'] || query.after || 0))

export const submitHeaders = z.looseObject({
  'idempotency-key': z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters')
    .optional(),
})

/** What `exactOptionalPropertyTypes` wants: the object without what is undefined. */
export const given = <T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }
