import { z } from 'zod'
import { errorCodes } from '../state/errors.ts'
import { truncatedSchema } from '../state/resource-schema.ts'
import { idSchema, maxMetadataBytes, maxMetadataKeys, requestBusinessSchema } from '../state/run-request.ts'
import { finishReasons, runStatusSchema } from '../state/run-view.ts'

/** Schemas of paths, queries and headers. Everything arrives as text; all objects reject unknown names. */

/** The number of a text of digits; anything else as it is. */
export const parseDigits = (value: unknown): unknown =>
  typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value

/** A whole number in a query. */
export const createCountSchema = (min: number, max: number) =>
  z.preprocess(parseDigits, z.int(`must be an integer from ${min} to ${max}`).min(min).max(max))
/** `true` or `false` in a query. */
export const booleanSchema = z.preprocess(
  (value) => (value === 'true' ? true : value === 'false' ? false : value),
  z.boolean('must be true or false'),
)
const limitSchema = createCountSchema(1, 200).describe('Items of a page, at most').default(50)
const cursorSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,1000}$/, 'must be the next_cursor of an earlier response')
  .describe('`next_cursor` of the page before')

/** The path `/{id}`: of a run, a session, a webhook … */
export const createIdParams = (one: string) =>
  z.strictObject({ id: idSchema.describe(`The id of the ${one}`) })
/** The path of a run. */
export const runParams = createIdParams('run')
/**
 * Every call may name its business: the admin token acts for it, any other token must belong to it.
 *
 * @example
 * ```ts
 * import { businessQuery } from 'mason-runtime/features'
 *
 * const { business_id } = businessQuery.parse({ business_id: 'default' })
 * ```
 */
export const businessQuery = z.strictObject({ business_id: requestBusinessSchema.optional() })
/** A page of things that belong to no business. */
export const plainPageQuery = z.strictObject({ limit: limitSchema, cursor: cursorSchema.optional() })
/** A page of things of a business. */
export const pageQuery = businessQuery.extend(plainPageQuery.shape)

/** A page of sessions, of one user where `user_id` is set. */
export const sessionsQuery = pageQuery.extend({ user_id: idSchema.describe('Of this user only').optional() })
/** A key of a caller's own. */
export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x20-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters')

const firstYear = '1970'
const daySchema = z.iso.date('must be a day such as 2026-01-31').refine((day) => day >= firstYear, {
  error: 'must not be before 1970',
})
/** A day of UTC or a time. */
export const momentSchema = z.union([daySchema, z.iso.datetime({ offset: true })], {
  error: 'must be a day such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z',
})

/** A span of time. */
export const spanQuery = z.strictObject({
  from: momentSchema.describe('On this day of UTC, at this time, or later').optional(),
  to: momentSchema.describe('Up to this day of UTC, or before this time').optional(),
})
const dayMs = 86_400_000
const isDay = (moment: string): boolean => moment.length === 10
/** The moments of a span: `from` is included, `to` is not. A day as `to` counts as a whole. */
export const readSpan = ({ from, to }: z.output<typeof spanQuery>) =>
  omitUndefined({
    from: from && new Date(from).toISOString(),
    to: to && new Date(Date.parse(to) + (isDay(to) ? dayMs : 0)).toISOString(),
  })

/** Begins the members of metadata in a query. */
export const metadataPrefix = 'metadata.'

/** A page of runs, filtered by user, session, status, idempotency key and members of their metadata. */
export const runsQuery = sessionsQuery
  .extend({
    business_id: z
      .union([requestBusinessSchema, z.literal('*')])
      .describe('The business; absent: that of the token; `*`: all of them, for the admin token only')
      .optional(),
    session_id: idSchema.describe('Of this session only').optional(),
    status: runStatusSchema.describe('Of this status only').optional(),
    idempotency_key: idempotencyKeySchema
      .describe('The run that this key created; of a queue job: its id')
      .optional(),
    ...spanQuery.shape,
    finish_reason: z.enum(finishReasons).describe('Completed for this reason').optional(),
    error: z.enum(errorCodes).describe('Failed with this code').optional(),
    node: z.string().min(1).max(200).describe('Failed at this node or tool').optional(),
    model: z.string().min(1).max(200).describe('Has called the model of this alias').optional(),
    q: z
      .string()
      .min(1)
      .max(1000)
      .describe('Words of its prompt or its answer, which all must be there, once it has ended')
      .optional(),
    order: z.enum(['asc', 'desc']).describe('`asc`: the oldest first').optional(),
    count: booleanSchema.describe('Whether the answer says how many there are, up to 10,000').optional(),
  })
  .catchall(z.string().max(maxMetadataBytes))
  .superRefine(
    (query, context) => {
      const keys = Object.keys(query).filter((name) => !Object.hasOwn(runsQuery.shape, name))
      const unknown = keys.filter((name) => !name.startsWith(metadataPrefix))
      if (unknown.length > 0) context.addIssue({ code: 'unrecognized_keys', keys: unknown })
      if (keys.length > maxMetadataKeys)
        context.addIssue({ code: 'custom', message: `has more than ${maxMetadataKeys} members of metadata` })
    },
    // beside the errors of the known ones
    { when: () => true },
  )

/** The object without undefined fields, as `exactOptionalPropertyTypes` requires. */
export const omitUndefined = <T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }

/** The response of every list; `next_cursor` is null on the last page. Its items name what is cut in them. */
export const pageSchema = <Shape extends z.ZodRawShape>(item: z.ZodObject<Shape>) =>
  z.strictObject({
    data: z.array('truncated' in item.shape ? item : item.extend({ truncated: truncatedSchema })),
    next_cursor: z.string().nullable(),
  })
