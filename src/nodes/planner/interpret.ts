import { z } from 'zod'
import type { AnyTool } from '../../graph/tool.ts'
import type { Block, PlannedCall } from '../../state/calls.ts'
import type { ModelReply, ToolCallRequest } from '../../state/ports.ts'
import { updateTodosInput, type WantedTodo } from '../../state/todos.ts'

/** The planner's control call: it changes the plan inside the planner's own action and is no tool. */
export const updateTodosName = 'update_todos'

/** A call that does not check, and what the model is told about it. */
export type Fault = { call: ToolCallRequest; fault: string }

export type Interpretation = {
  calls: PlannedCall[]
  block: Block
  /** The output tool the model called by itself, with the draft it gave along. */
  output: { tool: string; draft: string } | null
  todos: { call: ToolCallRequest; wanted: WantedTodo[] }[]
  faults: Fault[]
  notes: string[]
}

/** Reads the calls of a reply against the tools there are. Nothing is dropped silently: see `faults` and `notes`. */
export const interpret = (
  reply: ModelReply,
  tools: readonly AnyTool[],
  outputs: readonly AnyTool[],
): Interpretation => {
  const found: Interpretation = {
    calls: [],
    block: 'parallel',
    output: null,
    todos: [],
    faults: [],
    notes: [],
  }
  for (const call of reply.tool_calls) readCall(found, call, reply.text, tools, outputs)
  if (found.output && (found.calls.length > 0 || found.faults.length > 0)) {
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
  const refuse = (fault: string): void => {
    found.faults.push({ call, fault })
  }
  if (args === null) refuse(`the arguments of ${call.name} are not a JSON object; send them as one`)
  else if (call.name === updateTodosName) {
    const parsed = updateTodosInput.safeParse(args)
    if (parsed.success) found.todos.push({ call, wanted: parsed.data.todos })
    else refuse(misfit(call.name, parsed.error))
  } else if (tool) {
    const parsed = (tool.input as z.ZodType).safeParse(args)
    if (parsed.success) found.calls.push(numberCall(found.calls, { id: call.id, tool: tool.name, args }))
    else refuse(misfit(call.name, parsed.error))
  } else if (output) found.output = { tool: output.name, draft: draftIn(args) ?? text }
  else
    refuse(
      `there is no tool "${call.name}"; the tools are: ${tools.map(({ name }) => name).join(', ') || 'none'}`,
    )
}

const misfit = (name: string, error: z.ZodError): string =>
  `the arguments of ${name} do not check: ${z.prettifyError(error)}`

/** The next index of the plan; an id that stands twice is told apart by it. */
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

const draftIn = (args: PlannedCall['args']): string | null =>
  Object.values(args).find((value): value is string => typeof value === 'string' && value !== '') ?? null
