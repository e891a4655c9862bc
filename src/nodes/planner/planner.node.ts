import { z } from 'zod'
import { defineNode, type GraphInfo } from '../../graph/node.ts'
import type { AnyTool } from '../../graph/tool.ts'
import type { PlannedCall } from '../../state/calls.ts'
import { promptBudget } from '../../state/context/budget.ts'
import { compactionNode } from '../../state/context/compacted.ts'
import { isCompactionDue } from '../../state/context/compaction.ts'
import { contextFields } from '../../state/context.ts'
import type { ModelTool } from '../../state/ports.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import type { Json, RuntimeState, Todo } from '../../state/runtime-state.ts'
import { planTodos, updateTodosInput } from '../../state/todos.ts'
import { estimateTokens } from '../../state/tokens.ts'
import { turnTodos } from '../../state/turn.ts'
import { type Interpretation, interpret, updateTodosName } from './interpret.ts'
import { plannerMessages } from './messages.ts'
import { type Thought, think } from './think.ts'
import { finishTodos, startTodos } from './todo-moves.ts'

/** Decides the next step: which calls with which arguments, or that it is time to answer and how. */
export default defineNode({
  name: 'planner',
  description: 'Keeps the plan and decides: call tools, or finish through an output tool',
  reads: contextFields,
  writes: ['todos'],
  next: [{ tools: 'call' }, { tools: 'output' }, compactionNode],
  async run(state, { checkpoint, models, request, graph, clock, stream }, signal) {
    const tools = callTools(graph, request)
    const offered = modelTools(tools)
    const budget = promptBudget('planner', models.window?.('planner', request.models?.planner))
    if (isCompactionDue(state, budget))
      return checkpoint({
        summary: 'What was said and found has grown long: it is summed up first',
        relevance: 0,
        next: [compactionNode],
      })
    const outputs = graph.tools.filter((tool) => tool.kinds.includes('output'))
    const plan = createPlan(turnTodos(state))
    const thought = await think(
      {
        models,
        messages: plannerMessages(state, {
          budget: Math.max(budget / 2, budget - tokensOf(offered)),
          canOpen: tools.some(({ name }) => name === 'read_result'),
        }),
        tools: offered,
        model: request.models?.planner,
        onText: stream,
        read: (reply) => plan.apply(interpret(reply, tools, outputs)),
        isPlanOpen: () => plan.isOpen,
      },
      signal,
    )
    const { read, usage } = thought
    const common = { usage, relevance: 0, preparation: thought.reply.text }
    if (read.calls.length > 0) {
      const todos = startTodos(plan.todos, read.calls)
      return checkpoint(
        {
          ...common,
          summary: summaryOf(read.calls),
          result: { calls: read.calls, block: read.block, ...extras(thought) },
          next: read.calls.map((call) => call.tool),
        },
        plan.patch(todos),
      )
    }
    const output = outputTool(state, request, read.output?.tool)
    const draft = read.output?.draft ?? thought.reply.text
    const todos = finishTodos(plan.todos, { now: clock.now(), tool: output, output: draft })
    return checkpoint(
      {
        ...common,
        preparation: '',
        summary: `Finished the work; ${output} gives the answer`,
        result: { draft, ...extras(thought) },
        next: [output],
      },
      plan.patch(todos),
    )
  },
})

const callTools = (graph: GraphInfo, request: AdmittedRequest): AnyTool[] =>
  graph.tools.filter(
    (tool) => tool.kinds.includes('call') && (!request.tools || request.tools.includes(tool.name)),
  )

/** The request's own choice, then the model's; a structure that nobody asked for cannot be filled. */
const outputTool = (
  { output_structure }: Pick<RuntimeState, 'output_structure'>,
  request: AdmittedRequest,
  called: string | undefined,
): string => {
  const usual = output_structure.length > 0 ? 'structured_answer' : 'answer'
  if (request.output?.tool) return request.output.tool
  return !called || called === 'structured_answer' ? usual : called
}

const modelTools = (tools: readonly AnyTool[]): ModelTool[] => [
  ...tools.map(({ name, description, input }) => ({
    name,
    description,
    parameters: jsonSchema(input as z.ZodType),
  })),
  {
    name: updateTodosName,
    description: 'Creates or changes the plan of this turn: small tasks, in order of their dependencies.',
    parameters: jsonSchema(updateTodosInput),
  },
]

/** What the tools take beside the prompt. */
const tokensOf = (tools: readonly ModelTool[]): number =>
  tools.reduce((sum, tool) => sum + toolTokens(tool), 0)

const toolTokens = ({ name, description, parameters }: ModelTool): number => {
  const known =
    schemaTokens.get(parameters) ?? estimateTokens(name + description + JSON.stringify(parameters))
  schemaTokens.set(parameters, known)
  return known
}

const schemaTokens = new WeakMap<object, number>()

const jsonSchemas = new WeakMap<z.ZodType, Record<string, unknown>>()

/** Made once for each tool. */
const jsonSchema = (schema: z.ZodType): Record<string, unknown> => {
  const known = jsonSchemas.get(schema)
  if (known) return known
  const { $schema: _, ...made } = z.toJSONSchema(schema, { io: 'input' }) as Record<string, unknown>
  jsonSchemas.set(schema, made)
  return made
}

/** The plan of the turn while the model is still changing it. */
const createPlan = (before: readonly Todo[]) => {
  let todos = before
  return {
    get todos(): readonly Todo[] {
      return todos
    },
    /** Applies the plan's changes in a reply; one that does not check is a fault, and then nothing of it counts. */
    apply(read: Interpretation): Interpretation {
      let next = todos
      for (const { call, wanted } of read.todos) {
        const planned = planTodos(next, wanted)
        if (planned.ok) next = planned.todos
        else read.faults.push({ call, fault: planned.fault })
      }
      if (read.faults.length === 0) todos = next
      return read
    },
    get isOpen(): boolean {
      return todos.some((todo) => todo.status === 'pending' || todo.status === 'processing')
    },
    /** Only the todos that changed. */
    patch(now: readonly Todo[]): { todos?: Todo[] } {
      const changed = now.filter((todo) => !before.includes(todo))
      return changed.length > 0 ? { todos: changed } : {}
    },
  }
}

const extras = ({ read, corrections, reply }: Thought): Record<string, Json> => ({
  ...(read.notes.length > 0 && { notes: read.notes }),
  ...(corrections.length > 0 && { corrections }),
  ...(reply.reasoning && { reasoning: reply.reasoning, reasoned_by: reply.by ?? reply.model }),
  model: reply.model,
})

const summaryOf = (calls: readonly PlannedCall[]): string => {
  const names = [...new Set(calls.map((call) => call.tool))].join(', ')
  return calls.length === 1 ? `Calls ${names}` : `Makes ${calls.length} calls: ${names}`
}
