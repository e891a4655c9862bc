import { computePromptBudget } from '../../context/budget.ts'
import { isCompactionDue } from '../../context/compaction.ts'
import { chooseOutputTool, contextFields, isDraftFinal, readBeginning } from '../../context/context.ts'
import { compactionNodeName } from '../../context/latest-compaction.ts'
import { readRequestedForm } from '../../context/requested-form.ts'
import { readLargeTexts } from '../../context/result-text.ts'
import { listRounds } from '../../context/rounds.ts'
import { readOpening } from '../../context/turn-start.ts'
import { type AnyTool, defineNode, type GraphInfo } from '../../graph/definitions.ts'
import { listAnsweredCalls, type PlannedCall } from '../../state/calls.ts'
import { memoizeByObject } from '../../state/memoize.ts'
import type { Patch } from '../../state/patch.ts'
import type { ToolCallRequest } from '../../state/ports/model-messages.ts'
import { type DialectName, permitsCalls } from '../../state/ports/models.ts'
import { toProposedFields } from '../../state/proposals.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import type { Json, RuntimeState, Todo } from '../../state/runtime-state.ts'
import { listChoosable, type Scenario, type Scenarios } from '../../state/scenario.ts'
import {
  applyTodoChanges,
  type FindEvidence,
  isOpenTodo,
  type TodoChange,
  type TodoClosing,
} from '../../state/todos.ts'
import { turnActions, turnPrompt, turnTodos } from '../../state/turn.ts'
import { assignCalls, createFindEvidence, startTodos } from '../todo-progress.ts'
import { type Interpretation, type PlannerProposal, refuseUnfinished } from './dialects/interpret.ts'
import { toolsDialect } from './dialects/tools.ts'
import { readWrittenPlans } from './dialects/written-plans.ts'
import { xmlDialect } from './dialects/xml.ts'
import { plannerPrompt } from './messages.ts'
import { type DialectPrompt, type PlannerDecision, requestDecision } from './think.ts'

/** Decides the next step: which calls with which arguments, or that it is time to answer and how. */
export default defineNode({
  name: 'planner',
  description: 'Keeps the plan and decides: call tools, or finish through an output tool',
  reads: [...contextFields, 'usage'],
  writes: ['todos', 'task_goals', 'output_style', 'output_structure', 'scenario'],
  needs: ['blobs'],
  next: [{ tools: 'call' }, { tools: 'output' }, { one: [compactionNodeName, 'planner'] }],
  async run(
    state,
    { checkpoint, models, blobs, request, scenario, scenarios, graph, isAvailable, clock, workedMs, stream },
    signal,
  ) {
    const tools = callTools(graph, request)
    const isUsable = await Promise.all(
      tools.map((tool) => request.tools?.includes(tool.name) || isAvailable(tool)),
    )
    const usable = tools.filter((_, index) => isUsable[index])
    const budget = computePromptBudget('planner', models.window?.('planner', request.models?.planner))
    if (isCompactionDue(state, budget))
      return checkpoint({
        summary: 'What was said and found has grown long: it is summed up first',
        relevance: 0,
        next: [compactionNodeName],
      })
    const outputs = listOutputs(graph.tools)
    const open = listOpenScenarios(state, scenarios)
    const { isReplied } = readBeginning(state)
    const time = { now: clock.now(), workedMs: workedMs() }
    const plan = createPlan(turnTodos(state), createFindEvidence(turnActions(state), time))
    const openPrompt = async (name: DialectName): Promise<DialectPrompt> => {
      const dialect = name === 'xml' ? xmlDialect : toolsDialect
      const asked = dialect.buildRequest({ tools: usable, outputs, scenarios: open })
      const rounds = listRounds(turnActions(state))
      const prompt = plannerPrompt(state, {
        dialect,
        instructions: asked.instructions,
        budget: Math.max(budget / 2, budget - asked.tokens),
        canOpen: tools.some((tool) => tool.name === 'read_result'),
        largeTexts: await readLargeTexts(rounds, blobs),
        ...(name === 'xml' && { written: await readWrittenPlans(rounds, blobs) }),
        serverOf: (tool) => graph.tool(tool)?.server,
        limits: request.limits ?? {},
        writer: (shown) => findWriter(shown, request, scenario),
      })
      return { dialect, prompt, asked }
    }
    const thought = await requestDecision(
      {
        models,
        open: openPrompt,
        model: request.models?.planner,
        onText: stream,
        dialects: models.dialects?.('planner', request.models?.planner) ?? ['tools'],
        read: (dialect, reply) => {
          const read = dialect.parseReply(reply, { tools, outputs, scenarios: open })
          return plan.apply(dropUnknownScenario(refuseUnfinished(reply, read), isReplied ? [] : open))
        },
        isPlanOpen: () => plan.isOpen,
      },
      signal,
    )
    const { interpretation, usage } = thought
    const proposals = readProposals(state, request, { ...interpretation, proposal: plan.proposal }, open)
    const common = { usage, relevance: 0, preparation: interpretation.text }
    const extras = {
      ...toResultExtras(thought),
      ...(Object.keys(proposals).length > 0 && { proposed: Object.keys(proposals) }),
      ...(plan.closed.length > 0 && { closed: [...plan.closed] }),
      // what was written in the language is there as it was written
      ...(thought.dialect === 'tools' && plan.calls.length > 0 && { plan_calls: [...plan.calls] }),
    }
    if (proposals.scenario !== undefined)
      return checkpoint(
        {
          ...common,
          summary: `The request belongs to the scenario "${proposals.scenario}"`,
          result: extras,
          next: ['planner'],
        },
        { ...proposals, ...plan.patch(plan.todos) },
      )
    if (interpretation.calls.length > 0) {
      const changes = interpretation.todos.flatMap(({ wanted }) => wanted)
      const listAnswered = () => listAnsweredCalls(turnActions(state))
      const calls = assignCalls(plan.todos, nameResources(interpretation.calls, graph), changes, listAnswered)
      const { todos, notBefore } = startTodos(plan.todos, calls, clock.now())
      return checkpoint(
        {
          ...common,
          summary: toSummary(calls),
          result: {
            calls,
            block: interpretation.block,
            on_failure: interpretation.on_failure,
            ...(interpretation.leading_reads > 0 && { leading_reads: interpretation.leading_reads }),
            worked_ms: workedMs(),
            ...(notBefore !== null && { not_before: notBefore }),
            ...extras,
          },
          next: calls.map((call) => call.tool),
        },
        { ...proposals, ...plan.patch(todos) },
      )
    }
    const { output_structure = state.output_structure } = proposals
    const output = chooseOutputTool(request, output_structure.length > 0, interpretation.output?.tool)
    return checkpoint(
      {
        ...common,
        preparation: '',
        summary: `Finished the work; ${output} gives the answer`,
        result: {
          draft: interpretation.output?.draft ?? interpretation.text,
          // how the answer ended, where it may not be whole
          ...(!permitsCalls(thought.reply) && { finish: thought.reply.finish }),
          ...extras,
        },
        next: [output],
      },
      { ...proposals, ...plan.patch(plan.todos) },
    )
  },
})

/** A name that is none of those to choose from chooses nothing. */
const dropUnknownScenario = (read: Interpretation, open: readonly Scenario[]): Interpretation => {
  const { scenario, ...proposal } = read.proposal
  return open.some(({ name }) => name === scenario) ? read : { ...read, proposal }
}

const callTools = (graph: GraphInfo, request: AdmittedRequest): AnyTool[] =>
  graph.tools.filter(
    (tool) => tool.kinds.includes('call') && (!request.tools || request.tools.includes(tool.name)),
  )

/** The calls with the resource that one of them at a time can use, where their tools name one. */
const nameResources = (calls: readonly PlannedCall[], graph: GraphInfo): PlannedCall[] =>
  calls.map((call) => {
    const exclusive = graph.tool(call.tool)?.exclusive
    return exclusive === undefined ? call : { ...call, exclusive }
  })

/** Made once for the tools of a graph. */
const listOutputs = memoizeByObject((tools: readonly AnyTool[]) =>
  tools.filter(({ kinds }) => kinds.includes('output')),
)

/** The output tool that words the final text; null where the draft is passed on as it stands. */
const findWriter = (
  state: Pick<RuntimeState, 'output_structure' | 'output_style'>,
  request: AdmittedRequest,
  scenario: Scenario | null,
): string | null => {
  const tool = chooseOutputTool(request, state.output_structure.length > 0)
  return tool === 'answer' && isDraftFinal(state, request, scenario) ? null : tool
}

/** The plan of the turn while the model is still changing it. */
const createPlan = (before: readonly Todo[], evidence: FindEvidence) => {
  const plan = {
    todos: before,
    /** What the replies named as completed or failed. */
    closed: [] as readonly TodoClosing[],
    /** The arguments of the calls that changed it. */
    calls: [] as readonly Record<string, Json>[],
    /** What the replies proposed of the turn; the last word on a field counts. */
    proposal: {} as PlannerProposal,
    /** Applies the plan's changes in a reply; an invalid one is an error, and then none of it counts. */
    apply(read: Interpretation): Interpretation {
      let next = plan.todos
      const { output } = read
      const ended = output ? [{ call: output.call, wanted: output.todos }] : []
      const changes: { call: ToolCallRequest; wanted: TodoChange[] }[] = [...read.todos, ...ended]
      for (const { call, wanted } of changes) {
        const planned = applyTodoChanges(next, wanted, evidence)
        if (planned.ok) next = planned.todos
        else read.errors.push({ call, error: planned.error })
      }
      if (read.errors.length > 0) return read
      plan.todos = next
      plan.calls = plan.calls.concat(read.todos.map(({ args }) => args))
      plan.proposal = { ...plan.proposal, ...read.proposal }
      plan.closed = plan.closed.concat(changes.flatMap(({ wanted }) => wanted.flatMap(toClosing)))
      return read
    },
    get isOpen(): boolean {
      return plan.todos.some(isOpenTodo)
    },
    /** Only the todos that changed. */
    patch(now: readonly Todo[]): { todos?: Todo[] } {
      const changed = now.filter((todo) => !before.includes(todo))
      return changed.length > 0 ? { todos: changed } : {}
    },
  }
  return plan
}

const toResultExtras = ({
  interpretation: { notes, thought, wrote, cut },
  dialect,
  exchange,
  closing,
  reply,
}: PlannerDecision): Record<string, Json> => ({
  ...(notes.length > 0 && { notes }),
  ...(exchange.length > 0 && { exchange: [...exchange] }),
  ...(thought && { reasoning: thought, reasoned_by: reply.by ?? reply.model }),
  dialect,
  ...(closing !== '' && { closing }),
  ...(wrote !== undefined && { wrote }),
  ...(cut !== undefined && { cut }),
  model: reply.model,
})

const toClosing = ({ id, status, reason = '' }: TodoChange): TodoClosing[] =>
  status === 'completed' || status === 'failed' ? [{ id, status, reason }] : []

const toSummary = (calls: readonly PlannedCall[]): string => {
  const names = [...new Set(calls.map((call) => call.tool))].join(', ')
  return calls.length === 1 ? `Calls ${names}` : `Makes ${calls.length} calls: ${names}`
}

type SettingsState = Pick<
  RuntimeState,
  'action_history' | 'prompts' | 'scenario' | 'output_style' | 'output_structure'
>

/** Who has analysed the request before the planner: a model, the embedding model its scenario alone, or neither. */
const readAnalysis = (state: SettingsState): unknown =>
  readBeginning(state).actions.find(({ node }) => node === 'understand')?.result.by

/** The scenarios of which the planner's first reply may choose one; the same in all its prompts until it has. */
const listOpenScenarios = (state: SettingsState, scenarios: Scenarios): readonly Scenario[] => {
  const isOpen = state.scenario === '' && readOpening(state, 'open').includes('scenario')
  return isOpen && !['model', 'embedding'].includes(String(readAnalysis(state)))
    ? listChoosable(scenarios.list())
    : []
}

/** What a reply sets of the turn, where it is the first one: what the request, its scenario and understand leave open. */
const readProposals = (
  state: SettingsState,
  request: AdmittedRequest,
  { proposal, calls, todos, output }: Interpretation,
  open: readonly Scenario[],
): Pick<Patch, 'task_goals' | 'output_style' | 'output_structure' | 'scenario'> => {
  if (readBeginning(state).isReplied || readAnalysis(state) === 'model') return {}
  const isPlainText = calls.length + todos.length === 0 && !output
  const {
    goal,
    style,
    structure = [],
  }: Interpretation['proposal'] = isPlainText
    ? // an earlier reply of this action may have planned alone
      { ...readRequestedForm(turnPrompt(state)), ...proposal }
    : proposal
  const given = readOpening(state, 'given')
  const fields = toProposedFields(structure)
  const isFree = !given.includes('output_structure') && request.output?.tool !== 'answer'
  const scenario = open.find(({ name }) => name === proposal.scenario)?.name
  return {
    ...(goal && { task_goals: goal }),
    ...(style && state.output_style === '' && { output_style: style }),
    ...(isFree && state.output_structure.length === 0 && fields.length > 0 && { output_structure: fields }),
    ...(scenario !== undefined && { scenario }),
  }
}
