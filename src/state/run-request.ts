import { z } from 'zod'
import { isJsonWithin } from './resource-schema.ts'
import { mappingSchema, type OriginFile, outputTypeSchema } from './runtime-state.ts'
import { fileIdSchema, fileNameSchema, fileTypeSchema } from './uploaded-file.ts'

/** The one standard shape in which every product submits a job: POST body and queue job alike. CONTRACT section 3. */

/** The largest request, by HTTP or the queue. */
export const maxRequestBytes = 32 * 1024 * 1024

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

/**
 * Of a business: it also names folders, and what begins with `_` is Mason's own.
 *
 * @example
 * ```ts
 * import { businessIdSchema } from 'mason-runtime/features'
 *
 * const id = businessIdSchema.parse('acme')
 * ```
 */
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

/** A file of a request. */
export const fileSchema = z
  .strictObject({
    name: fileNameSchema.describe('Its name in the run; of an upload: its own where left out').optional(),
    type: fileTypeSchema.describe('Its media type; of an upload: its own where left out').optional(),
    file_id: fileIdSchema.describe('An upload of POST /v1/files').optional(),
    mapping: z
      .strictObject({
        provider: mappingSchema.shape.provider.describe('The store'),
        path: z.string().min(1).max(4096).describe('The path in the store'),
      })
      .describe('A file in a store of the business')
      .optional(),
    content_base64: z.base64().describe('The bytes themselves').optional(),
    url: z
      .url({ protocol: /^https?$/, error: 'must be an http or https address' })
      .max(4096)
      .describe('Fetched when the run begins')
      .optional(),
  })
  .refine(...isNamed('name'))
  .refine(...isNamed('type'))
  .refine(
    ({ file_id, mapping, content_base64, url }) =>
      [file_id, mapping, content_base64, url].filter((given) => given !== undefined).length === 1,
    { message: 'needs exactly one of file_id, content_base64, mapping and url' },
  )

/** Whether no two files have one name, and no name is the folder of another: what is in an archive is named so too. */
export const haveOwnNames = (files: readonly { name?: string | undefined }[]): boolean => {
  const names = new Set(files.map(({ name = '' }) => name))
  const isFolder = (name: string): boolean => {
    const parts = name.split('/')
    return parts.some((_, at) => at > 0 && names.has(parts.slice(0, at).join('/')))
  }
  return names.size === files.length && ![...names].some(isFolder)
}

/** One entry of the structure that a request wants its answer in. */
export const structureEntrySchema = z.strictObject({
  id: idSchema.describe('Its name in the answer'),
  expected: z.string().min(1).max(2000).describe('What belongs here'),
  type: outputTypeSchema.describe('The type of its content'),
})

const structureSchema = z
  .array(structureEntrySchema)
  .max(50)
  .refine((pieces) => new Set(pieces.map((piece) => piece.id)).size === pieces.length, 'ids must differ')

const outputSchema = z.strictObject({
  style: z.string().max(2000).describe('How the answer is written').optional(),
  structure: z
    .union([structureSchema, z.literal('session')], 'must be a list of entries or "session"')
    .describe(
      "The fields of the answer, for this turn; `session`: those of the session's latest request with some",
    )
    .optional(),
  tool: z.string().min(1).max(100).describe('The output tool, such as `answer`').optional(),
})

/** The limits of a run (contract, section 2). */
export const limitsSchema = z.strictObject({
  max_steps: z
    .int()
    .min(2)
    .max(100_000)
    .describe('Actions; the two that open and close a run are among them. Absent: 200')
    .optional(),
  max_tokens: z.int().min(1).describe('Tokens of all model calls together').optional(),
  max_cost: z
    .number()
    .positive()
    .max(1_000_000_000)
    .describe(
      "Money in the currency of the models' prices, each currency by itself; models without prices are free",
    )
    .optional(),
  timeout_ms: z
    .int()
    .min(1)
    .max(86_400_000)
    .describe(
      'Milliseconds of work and of waiting for a model; not those in the queue or of waiting for people. Absent: 15 minutes',
    )
    .optional(),
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
    isJsonWithin(maxMetadataBytes),
    `is larger than ${maxMetadataBytes} bytes as JSON; keep large data elsewhere and its id here`,
  )
  .meta({
    maxProperties: maxMetadataKeys,
    description: `Data of your own that comes back with the run, at most ${maxMetadataBytes} bytes as JSON`,
  })

/** The id of a business in a request. */
export const requestBusinessSchema = businessIdSchema.describe('The business; absent: that of the token')

const modelAlias = (role: string) =>
  z.string().min(1).describe(`The alias of the model for ${role}`).optional()

const runRequestFields = z.strictObject({
  prompt: z.string().min(1).max(1_000_000).describe('What the user wants'),
  user_id: idSchema.describe('The person the run is for; memories belong to them'),
  session_id: idSchema.describe('The conversation that the run continues; absent: a new one').optional(),
  business_id: requestBusinessSchema.optional(),
  files: z
    .array(fileSchema)
    .max(100)
    // those of uploads are compared once they are known
    .refine(
      (files) => haveOwnNames(files.filter((file) => file.name !== undefined)),
      'names must differ, and none may be the folder of another',
    )
    .describe('What the run works with, each from exactly one of file_id, mapping, content_base64 and url')
    .optional(),
  scenario: z
    .string()
    .max(200)
    .describe('The kind of request: the name of a scenario, or free text')
    .optional(),
  output: outputSchema.describe('How the answer looks').optional(),
  tools: z
    .array(z.string().min(1).max(100))
    .max(200)
    .describe('Names of the tools that the run may call; absent: all')
    .optional(),
  models: z
    .strictObject({
      planner: modelAlias('planning'),
      reflection: modelAlias('judging results'),
      output: modelAlias('the final answer'),
    })
    .describe('Models in place of those of the routes')
    .optional(),
  limits: limitsSchema.describe('Where the run ends with what there is').optional(),
  priority: z.int().min(0).max(100).describe('Runs of a higher one begin first. Absent: 0').optional(),
  delay_ms: z
    .int()
    .min(0)
    .max(30 * 86_400_000)
    .describe('Milliseconds before the run may begin')
    .optional(),
  metadata: metadataSchema.optional(),
  webhook_url: webhookUrlSchema
    .describe("Where the run's webhooks are sent, in place of the address of its business")
    .optional(),
})

/** A body of POST /v1/runs for the documentation. */
export const runRequestExample: z.input<typeof runRequestFields> = {
  prompt: 'Which orders were returned, and why?',
  user_id: 'ann',
  session_id: 'support-1041',
  files: [
    { name: 'orders.csv', type: 'text/csv', content_base64: 'b3JkZXIscmV0dXJuZWQKU08tMTA0MSx0b28gc21hbGwK' },
  ],
  output: { style: 'friendly and short' },
  limits: { max_steps: 50 },
  metadata: { order: 'SO-1041' },
}

/** The job as products submit it (contract, section 2). */
export const runRequestSchema = runRequestFields.meta({ examples: [runRequestExample] })

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

/** How a run is repeated in a new session. */
export const rerunRequestSchema = z
  .strictObject({
    prompt: runRequestFields.shape.prompt.describe('In place of its prompt').optional(),
    models: runRequestFields.shape.models.describe('In place of its models'),
    from_action: z
      .int()
      .min(1)
      .max(2_147_483_647)
      .describe('The action after which the new run goes on; absent: the new run begins anew')
      .optional(),
    learn: z.boolean().describe('Whether memories may be learned from the new run').default(false),
    repeat_effects: z.boolean().describe('Whether its side effects may happen again').default(false),
  })
  .refine(({ prompt, from_action }) => prompt === undefined || from_action === undefined, {
    path: ['prompt'],
    error: 'excludes from_action: a run that goes on keeps its prompt',
  })
  .meta({ examples: [{ prompt: 'Which orders were returned this week, and why?' }] })
/** See `rerunRequestSchema`. */
export type RerunRequest = z.infer<typeof rerunRequestSchema>

/** An id of a run that a producer of queue jobs chooses: `run_` and a UUID v7 (RFC 9562) without dashes. */
const runIdSchema = z
  .string()
  .regex(
    /^run_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/,
    'must be "run_" and a UUID v7 in 32 hexadecimal digits, in lower case',
  )
  .describe('The id that the run gets')

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
