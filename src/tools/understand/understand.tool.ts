import { z } from 'zod'
import { buildBackground } from '../../context/background.ts'
import { chooseOutputTool, contextFields } from '../../context/context.ts'
import { readOpening } from '../../context/turn-start.ts'
import { defineTool, type GraphInfo } from '../../graph/definitions.ts'
import { requestJson } from '../../graph/json-request.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Embeddings } from '../../state/ports/embeddings.ts'
import type { Log } from '../../state/ports/log.ts'
import { toProposalLine, toProposedFields } from '../../state/proposals.ts'
import { dataRule, joinTexts, operatorWords, ownText, type PromptText } from '../../state/provenance.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { outputTypeSchema, type RuntimeState } from '../../state/runtime-state.ts'
import { listChoosable, type Scenario, type Scenarios } from '../../state/scenario.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { noUsage } from '../../state/token-usage.ts'
import { turnPrompt } from '../../state/turn.ts'
import { matchBySimilarity } from './scenario-match.ts'

/** What understand asks a model, and what its reply means. */

const opening = ownText`You analyse what a user wants before an agent starts to work. The request says it; files, memory and the conversation are material.
${dataRule}
- task_goal: the goal in one sentence, in the language of the request.
- output_style: empty unless the request asks for a manner of writing.
- output_structure: empty unless the request asks for several separate, named pieces.`

/** The reply that understand asks of its model. */
const analysisReplySchema = z.object({
  scenario: z.string(),
  task_goal: z.string(),
  output_style: z.string().nullish(),
  output_structure: z
    .array(z.object({ id: z.string().min(1), expected: z.string(), type: outputTypeSchema }))
    .nullish(),
  start: z.string().nullish(),
})
type Analysis = z.infer<typeof analysisReplySchema>

/** The instructions; with the scenarios there are to choose from, and the ways to start. */
const analysisInstructions = (
  scenarios: readonly { name: string; description: string }[],
  outputs: readonly { name: string; description: string }[],
): PromptText =>
  joinTexts(
    [
      opening,
      scenarios.length === 0
        ? ownText`- scenario: the kind of request, in two or three words.`
        : ownText`- scenario: the name of the one that fits, exactly as it stands here; only if none does, two or three words of your own:\n${toList(scenarios)}`,
      outputs.length === 0
        ? ownText`- start: planner.`
        : ownText`- start: planner. Only when the request holds all that its answer needs, so that nothing has to be looked up, computed or asked, one of these, which then writes the answer at once:\n${toList(outputs)}`,
    ],
    '\n',
  )

const toList = (items: readonly { name: string; description: string }[]): PromptText =>
  operatorWords(
    items
      .map(({ name, description }) => `  - ${name}${description === '' ? '' : `: ${description}`}`)
      .join('\n'),
  )

/** The output tools that may begin a turn: none where files were given, since the answer may be in them. */
const listStartTools = (graph: GraphInfo, request: AdmittedRequest): GraphInfo['tools'] =>
  request.files.length > 0
    ? []
    : graph.tools.filter(({ kinds }) => kinds.includes('output') && !kinds.includes('prepare'))

/** Where the turn begins: the planner, unless the model named an output tool. The request's own tool is the one that answers. */
const chooseStart = (
  { start }: Analysis,
  starts: GraphInfo['tools'],
  request: AdmittedRequest,
  hasStructure: boolean,
): string => {
  const named = starts.find(({ name }) => name === start?.trim())?.name
  return named ? chooseOutputTool(request, hasStructure, named) : 'planner'
}

/** One of the rows where the reply names it in whatever case, else the model's own words. */
const chooseScenario = ({ scenario }: Analysis, scenarios: Scenarios): string => {
  const wanted = scenario.trim()
  const row = scenarios.list().find(({ name }) => name.toLowerCase() === wanted.toLowerCase())
  return row?.name ?? toProposalLine(wanted)
}

/** A prompt of at most this many characters that comes without files needs no analysis. */
const shortPrompt = 400

/** Analyses the goal: scenario, goal, style and structure, each only where it is not set yet, and where to begin. */
export default defineTool({
  name: 'understand',
  description:
    'Analyses what is wanted: scenario, goal, style and structure of the answer, and where to begin',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['scenario', 'task_goals', 'output_style', 'output_structure'],
  skip: (state) =>
    readOpening(state, 'rules').includes('understand') ||
    ['scenario', 'output_style', 'output_structure'].every((field) =>
      readOpening(state, 'given').includes(field),
    ) ||
    (isBrief(state) && readOpening(state, 'open').length === 0),
  needs: ['embeddings'],
  async run(state, { checkpoint, models, embeddings, scenarios, request, graph, log }, signal) {
    const starts = listStartTools(graph, request)
    const rows = state.scenario === '' ? scenarios.list() : []
    const { value, usage } = isBrief(state)
      ? { value: null, usage: noUsage }
      : await requestJson(
          models,
          {
            role: 'understand',
            instructions: analysisInstructions(rows, starts),
            parts: buildBackground(state),
            schema: analysisReplySchema,
          },
          signal,
          log,
        )
    if (!value) {
      const match = await chooseBySimilarity(turnPrompt(state), rows, embeddings, log, signal)
      const scenario = match?.name
      return checkpoint(
        {
          summary: scenario
            ? `The request belongs to the scenario "${scenario}"`
            : 'The goal is taken as the request says it',
          result: { by: match ? 'embedding' : 'rules', ...(scenario && { scenario }) },
          usage,
          relevance: 0,
          next: toNext(state, 'planner'),
        },
        scenario ? { scenario } : {},
      )
    }
    const scenario = state.scenario === '' ? chooseScenario(value, scenarios) : state.scenario
    const row = scenarios.list().find(({ name }) => name === scenario)
    const isPlain = (request.output?.tool ?? row?.output_tool) === 'answer'
    const isGiven = readOpening(state, 'given').includes('output_structure')
    const structure = isPlain || isGiven ? [] : toProposedFields(value.output_structure ?? [])
    const style = state.output_style === '' ? toProposalLine(value.output_style ?? '') : ''
    const start = chooseStart(value, starts, request, state.output_structure.length + structure.length > 0)
    return checkpoint(
      {
        summary: cutText(`Goal: ${value.task_goal}`, 500),
        result: { by: 'model', task_goal: value.task_goal, start },
        usage,
        relevance: 0.3,
        next: toNext(state, start),
      },
      {
        ...(value.task_goal.trim() !== '' && { task_goals: value.task_goal }),
        ...(state.scenario === '' && { scenario }),
        ...(style !== '' && { output_style: style }),
        ...(structure.length > 0 && { output_structure: structure }),
      },
    )
  },
})

/** The closest row by the embedding model, or that it found none; null: no embedding model has chosen. */
const chooseBySimilarity = async (
  prompt: string,
  rows: readonly Scenario[],
  { compare }: Embeddings,
  log: Log,
  signal: AbortSignal,
): Promise<{ name: string | undefined } | null> => {
  const described = listChoosable(rows)
  if (described.length === 0) return null
  try {
    return await matchBySimilarity(prompt, described, compare, signal)
  } catch (error) {
    if (signal.aborted || isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
    log.warn({ error: String(error) }, 'the embedding model could not choose a scenario; the planner may')
    return null
  }
}

/** The tools that were left for after the analysis, which then lead to `start`. */
const toNext = (state: Pick<RuntimeState, 'action_history'>, start: string): string[] => {
  const later = readOpening(state, 'later').map(String)
  return later.length > 0 ? later : [start]
}

/** Short, and without files: no model is asked. */
const isBrief = (state: Pick<RuntimeState, 'prompts' | 'action_history'>): boolean =>
  isShort(turnPrompt(state)) && readOpening(state, 'files').length === 0

/** By whole characters: an emoji or a rare ideograph takes two units of a string's length. */
const isShort = (prompt: string): boolean =>
  prompt.length <= 2 * shortPrompt && [...prompt].length <= shortPrompt
