import { z } from 'zod'
import { mappingSchema, type OriginFile, outputTypeSchema } from './runtime-state.ts'
import { fileIdSchema, fileNameSchema, fileTypeSchema } from './uploaded-file.ts'

/** The one standard shape in which every product submits a job: POST body and queue job alike. CONTRACT section 3. */

/**
 * Ids people choose: no spaces, no control characters, so that they are safe in URLs, logs and keys. They may start as
 * random ones in base64url do, but not as `__proto__` does.
 */
export const idPattern = /^(?!__)[\w-][\w.:@-]{0,199}$/
/** An id that the caller chooses. */
export const idSchema = z
  .string()
  .regex(
    idPattern,
    'must be 1 to 200 letters, digits or . _ : @ - and start with a letter, a digit, - or one _',
  )

/** Of a business: it also names folders, and what begins with `_` is Mason's own. */
export const businessIdSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.:@-]{0,199}$/,
    'must be 1 to 200 letters, digits or . _ : @ - and start with a letter or a digit',
  )

/** Where webhooks are sent: an address as the egress accepts it, but for whether it is private. */
export const webhookUrlSchema = z
  .string()
  .max(2000)
  .regex(/^https?:\/\/[\x21-\x7e]+$/, {
    error: 'must be an http or https address in ASCII, without spaces',
    abort: true,
  })
  .refine((url) => URL.canParse(url), 'is not an address')

/** Zod skips a refinement where another field is invalid, unless `when` says that it runs. */
const isNamed = (field: 'name' | 'type') =>
  [
    (file: { file_id?: unknown; name?: unknown; type?: unknown }) =>
      file[field] !== undefined || file.file_id !== undefined,
    {
      path: [field] as string[],
      error: 'is required',
      when: ({ value }: { value: unknown }) => typeof value === 'object' && value !== null,
    },
  ] as const

const fileSchema = z
  .strictObject({
    /** Beside `file_id`, those of the upload where they are left out. */
    name: fileNameSchema.optional(),
    type: fileTypeSchema.optional(),
    /** Uploaded before by POST /v1/files. */
    file_id: fileIdSchema.optional(),
    mapping: mappingSchema.extend({ path: z.string().min(1).max(4096) }).optional(),
    content_base64: z.base64().optional(),
    /** Fetched when the run begins. */
    url: z
      .url({ protocol: /^https?$/, error: 'must be an http or https address' })
      .max(4096)
      .optional(),
  })
  .refine(...isNamed('name'))
  .refine(...isNamed('type'))
  .refine(
    ({ file_id, mapping, content_base64, url }) =>
      [file_id, mapping, content_base64, url].filter((given) => given !== undefined).length === 1,
    { message: 'needs exactly one of file_id, content_base64, mapping and url' },
  )

/** Whether no two files have one name. */
export const haveOwnNames = (files: readonly { name?: string | undefined }[]): boolean =>
  new Set(files.map((file) => file.name)).size === files.length

const structureSchema = z
  .array(z.strictObject({ id: idSchema, expected: z.string().min(1).max(2000), type: outputTypeSchema }))
  .max(50)
  .refine((pieces) => new Set(pieces.map((piece) => piece.id)).size === pieces.length, 'ids must differ')

const outputSchema = z.strictObject({
  style: z.string().max(2000).optional(),
  /** For this turn only; `session`: that of the session's latest request that named one. */
  structure: z
    .union([structureSchema, z.literal('session')], {
      error: ({ input }) => (Array.isArray(input) ? '' : 'must be a list of entries or "session"'),
    })
    .optional(),
  tool: z.string().min(1).max(100).optional(),
})

/** The limits of a run (contract, section 2). */
export const limitsSchema = z.strictObject({
  /** Actions; the two that open and close a run are among them. */
  max_steps: z.int().min(2).max(100_000).optional(),
  max_tokens: z.int().min(1).optional(),
  /** Money, in the currency of the models' prices; of several currencies each by itself. Models without prices are not limited by it. */
  max_cost: z.number().positive().max(1_000_000_000).optional(),
  /** Milliseconds of work and of waiting for a model; queueing for a worker and waiting for people do not count. */
  timeout_ms: z.int().min(1).max(86_400_000).optional(),
})

/** Of the metadata of a run. */
export const maxMetadataKeys = 50
/** Of the metadata of a run, as JSON. */
export const maxMetadataBytes = 16 * 1024

/** Data of the caller's own that comes back with the run. */
export const metadataSchema = z
  .record(z.string().max(200), z.json())
  .refine(
    (metadata) => Object.keys(metadata).length <= maxMetadataKeys,
    `has more than ${maxMetadataKeys} keys`,
  )
  .refine(
    (metadata) => Buffer.byteLength(JSON.stringify(metadata)) <= maxMetadataBytes,
    `is larger than ${maxMetadataBytes} bytes as JSON; keep large data elsewhere and its id here`,
  )
  .meta({ maxProperties: maxMetadataKeys, description: `At most ${maxMetadataBytes} bytes as JSON` })

/** The job as products submit it (contract, section 2). */
export const runRequestSchema = z.strictObject({
  prompt: z.string().min(1).max(1_000_000),
  user_id: idSchema,
  session_id: idSchema.optional(),
  business_id: businessIdSchema.optional(),
  files: z
    .array(fileSchema)
    .max(100)
    // those of uploads are compared once they are known
    .refine((files) => haveOwnNames(files.filter((file) => file.name !== undefined)), 'names must differ')
    .optional(),
  scenario: z.string().max(200).optional(),
  output: outputSchema.optional(),
  /** Names of the tools this run may call; absent: all. */
  tools: z.array(z.string().min(1).max(100)).max(200).optional(),
  models: z
    .strictObject({
      planner: z.string().min(1).optional(),
      reflection: z.string().min(1).optional(),
      output: z.string().min(1).optional(),
    })
    .optional(),
  limits: limitsSchema.optional(),
  /** Higher first. */
  priority: z.int().min(0).max(100).optional(),
  delay_ms: z
    .int()
    .min(0)
    .max(30 * 86_400_000)
    .optional(),
  metadata: metadataSchema.optional(),
  /** Where the run's webhooks are sent, in place of the address of its business. */
  webhook_url: webhookUrlSchema.optional(),
})

/**
 * A job as a product submits it: the body of `POST /v1/runs`. `docs/contract.md` describes each field.
 *
 * @example
 * ```ts
 * import type { RunRequest } from 'mason-runtime'
 *
 * const request: RunRequest = {
 *   prompt: 'Which orders were returned?',
 *   user_id: 'ann',
 *   session_id: 'support-1041',
 *   files: [{ name: 'orders.csv', type: 'text/csv', url: 'https://example.com/orders.csv' }],
 *   limits: { max_steps: 50 },
 * }
 * ```
 */
export type RunRequest = z.infer<typeof runRequestSchema>
/** The limits of a run; absent ones have defaults. */
export type RunLimits = z.infer<typeof limitsSchema>

/** An id of a run that a producer of queue jobs chooses: `run_` and a UUID v7 (RFC 9562) without dashes. */
const runIdSchema = z
  .string()
  .regex(
    /^run_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/,
    'must be "run_" and a UUID v7 in 32 hexadecimal digits, in lower case',
  )

/** The data of a job of the public queue: a request, and the id of its run where the producer chooses one. */
export const jobDataSchema = runRequestSchema.extend({ run_id: runIdSchema.optional() })

/** The data of a job of the public queue. */
export type JobData = z.infer<typeof jobDataSchema>

/**
 * A request as the database keeps it: uploads are blobs, every file is an origin file.
 *
 * @example
 * ```ts
 * import type { AdmittedRequest } from 'mason-runtime'
 *
 * const orderOf = ({ metadata }: AdmittedRequest): unknown => metadata?.order
 * ```
 */
export type AdmittedRequest = Omit<RunRequest, 'files' | 'session_id' | 'business_id'> & {
  files: OriginFile[]
  /** The whole addresses of files whose `local_path` hides what may be a key, by that path. Never returned. */
  addresses?: Record<string, string>
}
