import { z } from 'zod'
import { memoizeByObject } from './memoize.ts'
import {
  aliasSchema,
  createPlainTextSchema,
  labelSchema,
  toChangeSchema,
  toViewSchema,
} from './resource-schema.ts'
import { limitsSchema } from './run-request.ts'

/** Kinds of request as rows: how the graph works on each. What a request says itself wins over its scenario. */

/** Roles whose prompts and models a scenario may set. */
const scenarioRoles = ['understand', 'planner', 'reflection', 'output', 'compaction'] as const
type ScenarioRole = (typeof scenarioRoles)[number]

/** Roles that rules can replace. */
const rulesRoleSchema = z.enum(['understand', 'reflection', 'compaction'])

const promptSchema = z
  .string()
  .trim()
  .min(1)
  .max(20_000)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'has a NUL or half a surrogate pair')

const byRole = <Value extends z.ZodType>(value: Value, what: string) =>
  z.strictObject(
    Object.fromEntries(
      scenarioRoles.map((role) => [role, value.describe(`${what} ${role}`).nullish()]),
    ) as Record<ScenarioRole, z.ZodOptional<z.ZodNullable<Value>>>,
  )

const uniqueNames = <Item extends z.ZodType<string>>(item: Item) =>
  z
    .array(item)
    .max(200)
    .refine((names) => new Set(names).size === names.length, 'names must differ')

const toolName = z.string().min(1).max(100)
const statusSchema = z.enum(['active', 'disabled'])

/** A scenario as an admin writes it. */
const scenarioInputSchema = z.strictObject({
  name: labelSchema.describe('What a request names as `scenario`'),
  description: createPlainTextSchema(2000)
    .describe('When it fits: a row is chosen by it and by the examples')
    .default(''),
  examples: z
    .array(createPlainTextSchema(500).min(1))
    .max(100)
    .describe('Requests that it fits, in the languages of its users')
    .default([]),
  prompts: byRole(promptSchema, 'Added to the instructions of')
    .describe('Added to the instructions, by role')
    .default({}),
  tools: uniqueNames(toolName).describe('Tools that may be called; null: all').nullish(),
  output_tool: toolName
    .describe('The output tool, where neither the request nor the planner names one')
    .nullish(),
  limits: limitsSchema.describe('Limits, where the request sets none').default({}),
  models: byRole(aliasSchema, 'The alias of the model for').describe('Models by role').default({}),
  rules: uniqueNames(rulesRoleSchema).describe('Roles that rules replace: they call no model').default([]),
  status: statusSchema.describe('`disabled`: as if it were not there').default('active'),
})

type LimitShape = typeof limitsSchema.shape
const limitChanges = z.strictObject(
  Object.fromEntries(Object.entries(limitsSchema.shape).map(([name, limit]) => [name, limit.nullish()])) as {
    [Name in keyof LimitShape]: z.ZodOptional<z.ZodNullable<LimitShape[Name]>>
  },
)

/** `prompts`, `limits` and `models` merge by member: null takes one away, or all. */
const scenarioChangeSchema = toChangeSchema(
  scenarioInputSchema.extend({
    limits: limitChanges.describe('Set one by one; null removes one').default({}),
  }),
  ['prompts', 'limits', 'models'],
)

/** A scenario as the admin API shows it. */
export const scenarioViewSchema = toViewSchema({
  ...scenarioInputSchema.shape,
  description: z.string(),
  examples: z.array(z.string()),
  prompts: z.partialRecord(z.enum(scenarioRoles), z.string()),
  tools: z.array(z.string()).nullable(),
  output_tool: z.string().nullable(),
  limits: limitsSchema,
  models: z.partialRecord(z.enum(scenarioRoles), z.string()),
  rules: z.array(rulesRoleSchema),
  status: statusSchema,
})
/** The bodies and the view of scenarios. */
export const scenarioSchemas = {
  input: scenarioInputSchema.meta({
    examples: [
      {
        name: 'returns',
        description: 'Questions about returned orders',
        examples: ['Why was my parcel sent back?'],
        prompts: { planner: 'Look an order up before you answer.' },
        limits: { max_steps: 40 },
      },
    ],
  }),
  change: scenarioChangeSchema.meta({ examples: [{ limits: { max_steps: 60 }, status: 'disabled' }] }),
  view: scenarioViewSchema,
}

/** The fields of a scenario that a PATCH changes. */
export type ScenarioChange = z.infer<typeof scenarioChangeSchema>
/** A scenario as the admin API shows it. */
export type ScenarioView = z.infer<typeof scenarioViewSchema>

/**
 * A scenario as the graph works by it.
 *
 * @example
 * ```ts
 * import type { Scenario } from 'mason-runtime'
 *
 * const nameOf = (scenario: Scenario): string => scenario.name
 * ```
 */
export type Scenario = Pick<
  ScenarioView,
  'name' | 'description' | 'examples' | 'prompts' | 'tools' | 'output_tool' | 'limits' | 'models' | 'rules'
>

/** The current scenarios. A request may name one that does not exist: free text. */
export type Scenarios = {
  list(): readonly Scenario[]
  find(name: string): Scenario | null
}

/** What a row is chosen by; none: only a request can name it. */
export const listScenarioTexts = ({
  description,
  examples,
}: Pick<Scenario, 'description' | 'examples'>): string[] =>
  [description, ...examples].filter((text) => text !== '')

/** The rows that can be chosen, not only named. */
export const listChoosable = memoizeByObject((rows: readonly Scenario[]): readonly Scenario[] =>
  rows.filter((row) => listScenarioTexts(row).length > 0),
)
