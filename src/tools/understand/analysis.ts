import { z } from 'zod'
import type { GraphInfo } from '../../graph/definitions.ts'
import { toProposalLine, toProposedFields } from '../../state/proposals.ts'
import { dataRule, joinTexts, operatorWords, ownText, type PromptText } from '../../state/provenance.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { type OutputField, outputTypeSchema } from '../../state/runtime-state.ts'
import type { Scenarios } from '../../state/scenario.ts'

/** What understand asks a model, and what its reply means. */

const opening = ownText`You analyse what a user wants before an agent starts to work. The request says it; files, memory and the conversation are material.
${dataRule}
- task_goal: the goal in one sentence, in the language of the request.
- output_style: empty unless the request asks for a manner of writing.
- output_structure: empty unless the request asks for several separate, named pieces.`

/** The reply that understand asks of its model. */
export const analysisReplySchema = z.object({
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
export const analysisInstructions = (
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
export const listStartTools = (graph: GraphInfo, request: AdmittedRequest): GraphInfo['tools'] =>
  request.files.length > 0
    ? []
    : graph.tools.filter(({ kinds }) => kinds.includes('output') && !kinds.includes('prepare'))

/** Where the turn begins: the planner, unless the model named an output tool. The request's own tool is the one that answers. */
export const chooseStart = (
  { start }: Analysis,
  starts: GraphInfo['tools'],
  request: AdmittedRequest,
  hasStructure: boolean,
): string => {
  const named = starts.find(({ name }) => name === start?.trim())?.name
  if (!named) return 'planner'
  if (request.output?.tool) return request.output.tool
  if (named === 'answer' || named === 'structured_answer')
    return hasStructure ? 'structured_answer' : 'answer'
  return named
}

/** One of the rows where the reply names it in whatever case, else the model's own words. */
export const chooseScenario = ({ scenario }: Analysis, scenarios: Scenarios): string => {
  const wanted = scenario.trim()
  const row = scenarios.list().find(({ name }) => name.toLowerCase() === wanted.toLowerCase())
  return row?.name ?? toProposalLine(wanted)
}

/** The proposed output style on one line; empty where there is none. */
export const readStyle = ({ output_style }: Analysis): string => toProposalLine(output_style ?? '')

/** The fields a model proposes. */
export const readStructure = ({ output_structure }: Analysis): OutputField[] =>
  toProposedFields(output_structure ?? [])
