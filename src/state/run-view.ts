import { z } from 'zod'
import { actionSchema, outputPieceSchema, todoSchema, usageSchema } from './runtime-state.ts'

/** What the outside is shown of runs, sessions and events. CONTRACT sections 3 and 4. Times are ISO, UTC. */

export const runStatusSchema = z.enum([
  'queued',
  'running',
  'input_required',
  'completed',
  'failed',
  'cancelled',
])

export const inputRequestSchema = z.strictObject({
  id: z.string(),
  question: z.string(),
  /** JSON Schema of the answer. */
  schema: z.record(z.string(), z.json()),
  options: z.array(z.string()),
  expires_at: z.string(),
})

export const runViewSchema = z.strictObject({
  id: z.string(),
  session_id: z.string(),
  turn: z.int(),
  status: runStatusSchema,
  finish_reason: z.enum(['answered', 'steps', 'tokens', 'cost', 'time', 'no_progress']).nullable(),
  answer: z.string().nullable(),
  output_structure: z.array(outputPieceSchema),
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
  metadata: z.record(z.string(), z.json()),
  created_at: z.string(),
  started_at: z.string().nullable(),
  ended_at: z.string().nullable(),
})

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
    }),
  ),
})

export const actionEventSchema = actionSchema.extend({ run_id: z.string(), turn: z.int() })
export const todosEventSchema = z.strictObject({
  run_id: z.string(),
  turn: z.int(),
  todos: z.array(todoSchema),
})
export const deltaSchema = z.strictObject({
  run_id: z.string(),
  node: z.string(),
  call: z.int().nullable(),
  attempt: z.int().positive(),
  text: z.string(),
})

export type RunStatus = z.infer<typeof runStatusSchema>
export type RunView = z.infer<typeof runViewSchema>
export type SessionView = z.infer<typeof sessionViewSchema>
export type ActionEvent = z.infer<typeof actionEventSchema>
export type Delta = z.infer<typeof deltaSchema>
export type Page<Item> = { data: Item[]; next_cursor: string | null }

/** Events as they go out; `id` is the action's, absent where an event has none of its own. */
export type RunEvent =
  | { event: 'action'; id: number; data: ActionEvent }
  | { event: 'status'; id: number; data: { run_id: string; turn: number; status: RunStatus } }
  | { event: 'todos'; id: number; data: z.infer<typeof todosEventSchema> }
  | { event: 'input_required'; id: number; data: z.infer<typeof inputRequestSchema> & { run_id: string } }
  | { event: 'delta'; data: Delta }
  | { event: 'done'; data: RunView }
