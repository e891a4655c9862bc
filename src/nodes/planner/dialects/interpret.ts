import { z } from 'zod'
import { type CallBody, describeInvalidArguments, parseArguments } from '../../../graph/call-body.ts'
import type { AnyTool } from '../../../graph/definitions.ts'
import { readToolEffects } from '../../../graph/tool-effects.ts'
import type { CallBlock, OnFailure, PlannedCall } from '../../../state/calls.ts'
import { memoizeByObject } from '../../../state/memoize.ts'
import type { ToolCallRequest } from '../../../state/ports/model-messages.ts'
import { type ModelReply, permitsCalls } from '../../../state/ports/models.ts'
import { parseFieldLine, toProposalLine } from '../../../state/proposals.ts'
import type { Json, OutputField } from '../../../state/runtime-state.ts'
import type { Scenario } from '../../../state/scenario.ts'
import { countJsonValues, maxJsonValues } from '../../../state/text/json-size.ts'
import { type TodoChange, type TodoClosing, todoChangesSchema } from '../../../state/todos.ts'

/** The planner's control call: it changes the plan inside the planner's own action and is not a tool. */
export const updateTodosTool = 'update_todos'

/** The planner's control call that ends the work: the draft, the output tool, and the tasks that are done. */
export const finishTool = 'finish'

const styleField = z.string().exactOptional()
/** Lines `id (type): what`; entries as requests write them are read too. */
const structureField = z
  .array(
    z.union([
      z.string(),
      z.looseObject({
        id: z.string(),
        expected: z.string().exactOptional(),
        type: z.string().exactOptional(),
      }),
    ]),
  )
  .meta({ items: { type: 'string' } })
  .exactOptional()

/** The arguments of `update_todos`, where these scenarios can be chosen. */
const createPlanSchema = (scenarios: readonly Scenario[]) => {
  const lines = scenarios.map(({ name, description, examples }) => `${name}: ${description || examples[0]}`)
  return z.strictObject({
    todos: todoChangesSchema.exactOptional(),
    goal: z.string().exactOptional().describe('A sentence.'),
    style: styleField.describe('As worded.'),
    structure: structureField.describe('Pieces: "id (type): what"'),
    ...(scenarios.length > 0 && {
      scenario: z
        .string()
        .exactOptional()
        .describe(`With your first reply and alone, if one fits:\n${lines.join('\n')}`),
    }),
  })
}

const describePlanTool = memoizeByObject((scenarios: readonly Scenario[]) => ({
  name: updateTodosTool,
  description: 'Creates or changes the plan: small tasks, by their dependencies.',
  input: createPlanSchema(scenarios),
}))
const noScenarios: readonly Scenario[] = []
/** `update_todos` as a model is offered it, made once for the scenarios of which it may choose one. */
export const toPlanTool = (scenarios: readonly Scenario[] = []) =>
  describePlanTool(scenarios.length > 0 ? scenarios : noScenarios)

/** The arguments of `finish`, where these output tools can be named. A structure is filled whether it is named or not. */
export const createFinishSchema = (outputs: readonly AnyTool[]) => {
  const names = outputs.map(({ name }) => name)
  const shown = names.filter((name) => name !== 'structured_answer').join(' or ')
  return z.strictObject({
    output: z
      .string()
      .refine((name) => names.includes(name), `there is no such output tool; name ${shown}`)
      .exactOptional()
      .describe(shown),
    answer: z.string().exactOptional().describe('Or your text.'),
    todos: z
      .array(
        z.strictObject({
          id: z.string().describe('Its id'),
          status: z.enum(['completed', 'failed']).describe('End.'),
          reason: z.string().describe('Why.'),
        }),
      )
      .exactOptional()
      .describe('What is done'),
    style: styleField.describe('As worded.'),
    structure: structureField.describe('Pieces.'),
  })
}

/** What a reply says of the turn itself: its goal, the form of the answer, and the scenario. */
export type PlannerProposal = {
  goal?: string
  style?: string
  structure?: Omit<OutputField, 'content'>[]
  scenario?: string
}

type ProposalArguments = Partial<z.infer<ReturnType<typeof createPlanSchema>>>

/** What was said in these arguments; an empty text is none. */
const readProposal = ({ goal, style, structure, ...more }: ProposalArguments): PlannerProposal => {
  const scenario = 'scenario' in more && typeof more.scenario === 'string' ? more.scenario.trim() : ''
  const fields = structure?.map((field, at) => {
    const line =
      typeof field === 'string' ? field : `${field.id} (${field.type ?? 'text'}): ${field.expected ?? ''}`
    return parseFieldLine(line, at)
  })
  return {
    ...(goal?.trim() && { goal: toProposalLine(goal) }),
    ...(style?.trim() && { style: toProposalLine(style) }),
    ...(fields && fields.length > 0 && { structure: fields }),
    ...(scenario && { scenario }),
  }
}

/** Characters that are said of a refused call. */
export const maxError = 1000

/** What a planner may do: call these tools, and finish through one of these outputs. */
export type Offer = {
  tools: readonly AnyTool[]
  outputs: readonly AnyTool[]
  /** The scenarios of which the first reply may choose one. */
  scenarios?: readonly Scenario[]
}

/** How often one reply can change the plan: one call can hold all changes. */
const maxPlanCalls = 20

/** An invalid call, or null for what is wrong with the reply, and the message to the model about it. */
export type CallError = { call: ToolCallRequest | null; error: string; listsTools?: true }

/** What a reply of the planner means. */
export type Interpretation = {
  calls: PlannedCall[]
  block: CallBlock
  /** How many calls at the start of a sequential block only read, and run side by side. */
  leading_reads: number
  /** The end of the work: the output tool that was named, if any, the draft, and the tasks that are done. */
  output: { tool: string | null; draft: string; todos: TodoClosing[]; call: ToolCallRequest } | null
  todos: { call: ToolCallRequest; wanted: TodoChange[]; args: Record<string, Json> }[]
  proposal: PlannerProposal
  errors: CallError[]
  notes: string[]
  /** What is said to the user: the answer, or what is said beside calls. */
  text: string
  /** What the model thought before. */
  thought: string
  on_failure: OnFailure
  /** The reply itself where it is written in the language, and how many characters after it were not taken. */
  wrote?: string
  cut?: number
}

/** The calls of a reply, and what it says beside them. */
export type ReplyCalls = Pick<ModelReply, 'tool_calls' | 'text' | 'reasoning'>

/** How the arguments of a tool are read; by default from JSON. */
export type ReadBody = (tool: AnyTool, text: string) => CallBody

/** Reads the calls of a reply against the tools there are. Nothing is dropped silently: see `errors` and `notes`. */
export const interpretReply = (
  reply: ReplyCalls,
  offer: Offer,
  readBody: ReadBody = readJsonBody,
): Interpretation => {
  const { tools } = offer
  const found: Interpretation = {
    calls: [],
    block: 'parallel',
    leading_reads: 0,
    on_failure: 'go_on',
    output: null,
    todos: [],
    proposal: {},
    errors: [],
    notes: [],
    text: reply.text,
    thought: reply.reasoning,
  }
  const values = reply.tool_calls.reduce((sum, call) => sum + countJsonValues(call.arguments), 0)
  if (values > maxJsonValues) {
    const error = `the arguments of all calls have more than ${maxJsonValues} values; send fewer calls, or smaller ones`
    return { ...found, errors: reply.tool_calls.map((call) => ({ call, error })) }
  }
  for (const call of reply.tool_calls) readCall(found, call, offer, readBody)
  if (found.output && (found.calls.length > 0 || found.errors.length > 0)) {
    found.notes.push(
      `${found.output.call.name} was called beside other tools and was dropped: finish once they have answered`,
    )
    found.output = null
  }
  for (const { call, wanted } of found.todos) {
    const missing = wanted.flatMap(({ calls = [] }) => calls).find((nth) => !found.calls[nth - 1])
    if (missing !== undefined)
      found.errors.push({
        call,
        error: `there is no tool call ${missing} beside update_todos; the first is 1`,
      })
  }
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  // calls that change something keep the order in which they were written; what only reads before them need not
  const write = found.calls.findIndex(({ tool, args }) => readToolEffects(byName.get(tool), args) === 'write')
  if (write >= 0) Object.assign(found, { block: 'sequential', leading_reads: write })
  return found
}

const reasons: Partial<Record<ModelReply['finish'], string>> = {
  length: 'the reply was cut at the output limit',
  content_filter: "the vendor's content filter ended the reply",
}

/**
 * What a reply means that is not whole, or ended for a reason that is not known: none of its calls is made, and the model is
 * asked again. Beside an unknown reason its text stands.
 */
export const refuseUnfinished = (reply: ModelReply, read: Interpretation): Interpretation => {
  const { calls, todos, output, errors } = read
  const isText = reply.tool_calls.length + calls.length + todos.length + errors.length === 0 && !output
  if (permitsCalls(reply) || isText) return read
  const why = `${reasons[reply.finish] ?? 'the reply ended for a reason that is not known'}, so none of its calls was made`
  const none = { ...read, calls: [], todos: [], proposal: {}, output: null }
  if (reply.finish === 'unknown' && read.text.trim() !== '')
    return { ...none, errors: [], notes: [...read.notes, why] }
  const error = `${why}; make them again, with less text and shorter arguments`
  const refused = reply.tool_calls.map((call) => ({ call, error }))
  return { ...none, errors: refused.length > 0 ? refused : [{ call: null, error }] }
}

const readCall = (
  found: Interpretation,
  call: ToolCallRequest,
  { tools, outputs, scenarios }: Offer,
  readBody: ReadBody,
): void => {
  const { text } = found
  const args = parseArguments(call.arguments)
  const tool = tools.find((candidate) => candidate.name === call.name)
  const output = outputs.find((candidate) => candidate.name === call.name)
  const refuse = (error: string): void => {
    found.errors.push({ call, error })
  }
  /** The list of tools is said once in a reply. */
  const refuseUnknownTool = (name: string, field = ''): void => {
    const isListed = found.errors.some(({ listsTools }) => listsTools)
    const list = isListed ? '' : `; the tools are: ${tools.map((one) => one.name).join(', ') || 'none'}`
    found.errors.push({ call, error: `${field}there is no tool "${name}"${list}`, listsTools: true })
  }
  /** The arguments by their schema; null once they were refused. */
  const parse = <Schema extends z.ZodType>(schema: Schema): z.infer<Schema> | null => {
    const parsed = schema.safeParse(args)
    if (!parsed.success) refuse(`the arguments of ${call.name} are invalid: ${z.prettifyError(parsed.error)}`)
    return parsed.success ? parsed.data : null
  }
  if (tool && call.name !== updateTodosTool && call.name !== finishTool) {
    const body = readBody(tool, call.arguments)
    if (!body.ok) refuse(body.error)
    else found.calls.push(numberCall(found.calls, { id: call.id, tool: tool.name, args: body.args }))
  } else if (args === null) refuse(`the arguments of ${call.name} are not a JSON object; send them as one`)
  else if (call.name === updateTodosTool) {
    const planned = parse(toPlanTool(scenarios).input)
    const wanted = planned && (planned.todos ?? [])
    const known = new Set([...tools, ...outputs].map(({ name }) => name).concat(finishTool))
    const unknown = wanted?.flatMap((todo) => todo.suggested_tools ?? []).find((name) => !known.has(name))
    if (found.todos.length === maxPlanCalls)
      refuse(
        `update_todos was called more than ${maxPlanCalls} times in one reply; put all changes into one call`,
      )
    else if (unknown !== undefined) refuseUnknownTool(unknown, 'suggested_tools: ')
    else if (wanted) {
      const proposal = readProposal(planned)
      if (!planned.todos && Object.keys(proposal).length === 0)
        refuse('update_todos says nothing; name the todos that are new or change')
      else {
        found.todos.push({ call, wanted, args })
        Object.assign(found.proposal, proposal)
      }
    }
  } else if (call.name === finishTool) {
    // a goal comes too late for it to be offered
    const wanted = parse(createFinishSchema(outputs).extend({ goal: z.string().exactOptional() }))
    const draft = wanted?.answer ?? text
    if (!wanted) return
    if (found.output) refuse('the work was finished twice in one reply; finish once')
    else if (draft.trim() === '')
      refuse('finish needs the complete answer: as `answer`, or as the text beside it')
    else {
      found.output = { tool: wanted.output ?? null, draft, todos: wanted.todos ?? [], call }
      Object.assign(found.proposal, readProposal(wanted))
    }
  } else if (output) found.output = { tool: output.name, draft: findDraft(args) ?? text, todos: [], call }
  else refuseUnknownTool(call.name)
}

/** The next index of the plan; a repeated id gets it as a suffix. */
const numberCall = (calls: readonly PlannedCall[], call: Omit<PlannedCall, 'index'>): PlannedCall => {
  const index = calls.length
  const isTaken = calls.some(({ id }) => id === call.id)
  return { index, id: isTaken ? `${call.id}_${index}` : call.id, tool: call.tool, args: call.args }
}

const readJsonBody: ReadBody = ({ name, input }, text) => {
  const args = parseArguments(text)
  if (args === null)
    return { ok: false, error: `the arguments of ${name} are not a JSON object; send them as one` }
  const { error } = (input as z.ZodType).safeParse(args)
  return error ? { ok: false, error: describeInvalidArguments(name, text, error) } : { ok: true, args }
}

const findDraft = (args: PlannedCall['args']): string | null =>
  Object.values(args).find((value): value is string => typeof value === 'string' && value !== '') ?? null
