import { z } from 'zod'
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

const byRole = <Value extends z.ZodType>(value: Value) =>
  z.strictObject(
    Object.fromEntries(scenarioRoles.map((role) => [role, value.nullish()])) as Record<
      ScenarioRole,
      z.ZodOptional<z.ZodNullable<Value>>
    >,
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
  /** What a request says as `scenario`, and what understand chooses by. */
  name: labelSchema,
  /** When it fits: understand chooses by it and by the examples. */
  description: createPlainTextSchema(2000).default(''),
  /** Requests it fits, in the languages of its users. */
  examples: z.array(createPlainTextSchema(500).min(1)).max(100).default([]),
  /** Added to the instructions of a role. */
  prompts: byRole(promptSchema).default({}),
  /** Tools that may be called; null: all. */
  tools: uniqueNames(toolName).nullish(),
  /** The output tool, where neither the request nor the planner names one. */
  output_tool: toolName.nullish(),
  limits: limitsSchema.default({}),
  /** By role: the alias of a model. */
  models: byRole(aliasSchema).default({}),
  rules: uniqueNames(rulesRoleSchema).default([]),
  status: statusSchema.default('active'),
})

type LimitShape = typeof limitsSchema.shape
const limitChanges = z.strictObject(
  Object.fromEntries(Object.entries(limitsSchema.shape).map(([name, limit]) => [name, limit.nullish()])) as {
    [Name in keyof LimitShape]: z.ZodOptional<z.ZodNullable<LimitShape[Name]>>
  },
)

/** `prompts`, `limits` and `models` merge by member: null takes one away. */
const scenarioChangeSchema = toChangeSchema(scenarioInputSchema.extend({ limits: limitChanges }))

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
  input: scenarioInputSchema,
  change: scenarioChangeSchema,
  view: scenarioViewSchema,
}

/** A scenario as an admin writes it. */
export type ScenarioInput = z.infer<typeof scenarioInputSchema>
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
