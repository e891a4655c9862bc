import { z } from 'zod'
import type { AnyTool } from '../../graph/definitions.ts'
import type { CallBlock, PlannedCall } from '../../state/calls.ts'
import type { ToolCallRequest } from '../../state/ports/model-messages.ts'
import type { ModelReply } from '../../state/ports/models.ts'
import { type TodoChange, updateTodosInputSchema } from '../../state/todos.ts'

/** The planner's control call: it changes the plan inside the planner's own action and is no tool. */
export const updateTodosTool = 'update_todos'

/** An invalid call, and the message to the model about it. */
export type CallError = { call: ToolCallRequest; error: string }

/** What a reply of the planner means. */
export type Interpretation = {
  calls: PlannedCall[]
  block: CallBlock
  /** The output tool the model called by itself, with the draft it gave along. */
  output: { tool: string; draft: string } | null
  todos: { call: ToolCallRequest; wanted: TodoChange[] }[]
  errors: CallError[]
  notes: string[]
}

/** Reads the calls of a reply against the tools there are. Nothing is dropped silently: see `errors` and `notes`. */
export const interpretReply = (
  reply: ModelReply,
  tools: readonly AnyTool[],
  outputs: readonly AnyTool[],
): Interpretation => {
  const found: Interpretation = {
    calls: [],
    block: 'parallel',
    output: null,
    todos: [],
    errors: [],
    notes: [],
  }
  for (const call of reply.tool_calls) readCall(found, call, reply.text, tools, outputs)
  if (found.output && (found.calls.length > 0 || found.errors.length > 0)) {
    found.notes.push(
      `${found.output.tool} was called beside other tools and was dropped: finish once they have answered`,
    )
    found.output = null
  }
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  // calls that change something keep the order in which they were written
  if (found.calls.some((call) => byName.get(call.tool)?.pure !== true)) found.block = 'sequential'
  return found
}

const readCall = (
  found: Interpretation,
  call: ToolCallRequest,
  text: string,
  tools: readonly AnyTool[],
  outputs: readonly AnyTool[],
): void => {
  const args = readArguments(call.arguments)
  const tool = tools.find((candidate) => candidate.name === call.name)
  const output = outputs.find((candidate) => candidate.name === call.name)
  const refuse = (error: string): void => {
    found.errors.push({ call, error })
  }
  if (args === null) refuse(`the arguments of ${call.name} are not a JSON object; send them as one`)
  else if (call.name === updateTodosTool) {
    const parsed = updateTodosInputSchema.safeParse(args)
    if (parsed.success) found.todos.push({ call, wanted: parsed.data.todos })
    else refuse(toArgumentError(call.name, parsed.error))
  } else if (tool) {
    const parsed = (tool.input as z.ZodType).safeParse(args)
    if (parsed.success) found.calls.push(numberCall(found.calls, { id: call.id, tool: tool.name, args }))
    else refuse(toArgumentError(call.name, parsed.error))
  } else if (output) found.output = { tool: output.name, draft: findDraft(args) ?? text }
  else
    refuse(
      `there is no tool "${call.name}"; the tools are: ${tools.map(({ name }) => name).join(', ') || 'none'}`,
    )
}

const toArgumentError = (name: string, error: z.ZodError): string =>
  `the arguments of ${name} are invalid: ${z.prettifyError(error)}`

/** The next index of the plan; a repeated id gets it as a suffix. */
const numberCall = (calls: readonly PlannedCall[], call: Omit<PlannedCall, 'index'>): PlannedCall => {
  const index = calls.length
  const isTaken = calls.some(({ id }) => id === call.id)
  return { index, id: isTaken ? `${call.id}_${index}` : call.id, tool: call.tool, args: call.args }
}

const argumentsSchema = z.record(z.string(), z.json())

const readArguments = (text: string): PlannedCall['args'] | null => {
  try {
    const parsed = argumentsSchema.safeParse(text.trim() === '' ? {} : JSON.parse(text))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}

const findDraft = (args: PlannedCall['args']): string | null =>
  Object.values(args).find((value): value is string => typeof value === 'string' && value !== '') ?? null
