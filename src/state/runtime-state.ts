import { z } from 'zod'

/**
 * The one state every node works on. Types, JSON Schema and checks all derive from the schemas here.
 * Lists of lists have one inner list per turn; `prompts`, `task_goals` and `usage` one entry per turn.
 * Source: CONTRACT section 5.
 */

/** Tokens of model calls. */
export const usageSchema = z.strictObject({
  prompt_tokens: z.int().nonnegative(),
  completion_tokens: z.int().nonnegative(),
  total_tokens: z.int().nonnegative(),
})

/** Where a file is in a store of the business. */
export const mappingSchema = z.strictObject({
  provider: z.enum(['aliyun', 'tencent', 'aws', 'gcc', 'local']),
  path: z.string(),
})

/** A file as the request named it. */
const originFileSchema = z.strictObject({
  name: z.string().min(1),
  type: z.string(),
  local_path: z.string(),
  mapping: mappingSchema.nullable(),
})

/** The type that a field of the output must have. */
export const outputTypeSchema = z.enum(['text', 'number', 'boolean', 'date', 'list', 'table', 'json'])

/** One field of the output structure. */
export const outputFieldSchema = z.strictObject({
  id: z.string().min(1),
  expected: z.string(),
  content: z.json(),
  type: outputTypeSchema,
})

/** A recalled memory. */
export const memorySchema = z.strictObject({
  id: z.string(),
  kind: z.enum(['preference', 'fact', 'knowledge', 'episode']),
  content: z.string(),
  relevance: z.number().min(0).max(1),
  source_action_ids: z.array(z.int()),
  created_at: z.string(),
  /** A sentence of the user asserts it. Absent: not confirmed, so it is data in a prompt. */
  confirmed: z.literal(true).optional(),
})

/** The status of a task. */
export const todoStatusSchema = z.enum(['pending', 'processing', 'completed', 'failed'])

const todoErrorSchema = z.strictObject({
  timestamp: z.string(),
  attempt: z.int().positive(),
  tool_used: z.string(),
  error: z.string(),
  retry_count: z.int().nonnegative(),
  /** Milliseconds of work, without waits. */
  execution_time: z.number().nonnegative(),
})

const completionSchema = z.strictObject({
  completed_at: z.string(),
  tool_used: z.string(),
  /** Milliseconds of work, without waits. */
  execution_time: z.number().nonnegative(),
  output: z.string(),
})

/** One task of the plan. */
export const todoSchema = z.strictObject({
  id: z.string().min(1),
  task: z.string().min(1),
  status: todoStatusSchema,
  dependencies: z.array(z.string()),
  suggested_tools: z.array(z.string()),
  priority: z.number(),
  execution_tips: z.string(),
  success_criteria: z.string(),
  /** Computed: tasks on the longest chain that waits for this one, itself included. */
  critical_path_length: z.int().nonnegative(),
  retry: z.int().nonnegative(),
  max_retry: z.int().nonnegative(),
  /** ISO time before which no new attempt starts, or null. */
  retry_after: z.string().nullable(),
  error_history: z.array(todoErrorSchema),
  completion_details: completionSchema.nullable(),
})

const actionContextSchema = z.strictObject({
  type: z.enum(['text', 'image', 'data']),
  content: z.json(),
  important: z.boolean(),
  usage_type: z.enum(['refactor', 'modify', 'reference', 'analysis', 'output']),
  mapping: mappingSchema.extend({ public: z.string() }).optional(),
})

/** What reflection thinks of an earlier action, in the result of its own action. */
export const judgementSchema = z.strictObject({
  id: z.int().positive(),
  relevance: z.number().min(0).max(1),
  important: z.boolean(),
})

/** What a node appends: an action before the database gives it its id. */
export const actionBodySchema = z.strictObject({
  node: z.string().min(1),
  preparation: z.string(),
  summary: z.string(),
  result: z.record(z.string(), z.json()),
  context: actionContextSchema.nullable(),
  relevance: z.number().min(0).max(1),
  usage: usageSchema,
  next: z.array(z.string()),
})

/** One committed action. */
export const actionSchema = actionBodySchema.extend({ id: z.int().positive() })

/** A message of the conversation. */
const chatMessageSchema = z.strictObject({
  role: z.enum(['user', 'assistant']),
  content: z.string(),
  /** 1 for the first turn of the session. */
  turn: z.int().positive(),
})

/** The RuntimeState: the one state that all nodes and tools share. */
export const runtimeStateSchema = z.strictObject({
  prompts: z.array(z.string()),
  user_context: z.record(z.string(), z.json()),
  memory: z.array(memorySchema),
  output_style: z.string(),
  output_structure: z.array(outputFieldSchema),
  scenario: z.string(),
  task_goals: z.array(z.string()),
  origin_files: z.array(originFileSchema),
  /** What the files contain, by file name. */
  preprocessed_files: z.strictObject({
    documents: z.record(z.string(), z.json()),
    tables: z.record(z.string(), z.json()),
    other_files: z.record(z.string(), z.json()),
  }),
  todos: z.array(z.array(todoSchema)),
  action_history: z.array(z.array(actionSchema)),
  chat_history: z.array(chatMessageSchema),
  usage: z.array(usageSchema),
})

type DeepReadonly<T> = T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T

/**
 * A JSON value.
 *
 * @example
 * ```ts
 * import type { Json } from 'mason-runtime'
 *
 * const order: Json = { id: 'SO-1', items: [1, 2] }
 * ```
 */
export type Json = z.infer<ReturnType<typeof z.json>>
/**
 * Tokens of model calls.
 *
 * @example
 * ```ts
 * import type { Usage } from 'mason-runtime'
 *
 * const count = (usage: Usage): number => usage.total_tokens
 * ```
 */
export type Usage = z.infer<typeof usageSchema>
/**
 * A file as the request named it.
 *
 * @example
 * ```ts
 * import type { OriginFile } from 'mason-runtime'
 *
 * const isTable = (file: OriginFile): boolean => file.type === 'text/csv'
 * ```
 */
export type OriginFile = z.infer<typeof originFileSchema>
/** One field of the output structure. */
export type OutputField = z.infer<typeof outputFieldSchema>
/** The type that a field of the output must have. */
export type OutputType = z.infer<typeof outputTypeSchema>
/** A recalled memory. */
export type Memory = z.infer<typeof memorySchema>
/** One task of the plan. */
export type Todo = z.infer<typeof todoSchema>
/** The status of a task. */
export type TodoStatus = z.infer<typeof todoStatusSchema>
/** Reflection's verdict on the results. */
export type Judgement = z.infer<typeof judgementSchema>
/** An action without its position in the log. */
export type ActionBody = z.infer<typeof actionBodySchema>
/** One committed action. */
export type Action = z.infer<typeof actionSchema>
/** A message of the conversation. */
export type ChatMessage = z.infer<typeof chatMessageSchema>

/**
 * The state of a session as nodes read it; nodes never write to it. `docs/contract.md` describes each field.
 *
 * @example
 * ```ts
 * import type { RuntimeState } from 'mason-runtime'
 *
 * const openTodos = (state: RuntimeState): string[] =>
 *   (state.todos.at(-1) ?? []).filter((todo) => todo.status !== 'completed').map((todo) => todo.task)
 * ```
 */
export type RuntimeState = DeepReadonly<z.infer<typeof runtimeStateSchema>>
/** A field of the RuntimeState. */
export type StateField = keyof RuntimeState
/** All fields of the RuntimeState. */
export const stateFields = Object.keys(runtimeStateSchema.shape) as readonly StateField[]

/** The state before the first turn of a session. */
export const emptyState: RuntimeState = {
  prompts: [],
  user_context: {},
  memory: [],
  output_style: '',
  output_structure: [],
  scenario: '',
  task_goals: [],
  origin_files: [],
  preprocessed_files: { documents: {}, tables: {}, other_files: {} },
  todos: [],
  action_history: [],
  chat_history: [],
  usage: [],
}

/**
 * JSON Schema (draft 2020-12) of the state, for clients and docs.
 *
 * @example
 * ```ts
 * import { writeFile } from 'node:fs/promises'
 * import { runtimeStateJsonSchema } from 'mason-runtime'
 *
 * await writeFile('runtime-state.schema.json', JSON.stringify(runtimeStateJsonSchema(), null, 2))
 * ```
 */
export const runtimeStateJsonSchema = (): Record<string, unknown> => z.toJSONSchema(runtimeStateSchema)
