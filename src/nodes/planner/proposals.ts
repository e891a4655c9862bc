import { readBeginning } from '../../context/context.ts'
import { readRequestedForm } from '../../context/requested-form.ts'
import { readOpening } from '../../context/turn-start.ts'
import type { Patch } from '../../state/patch.ts'
import { toProposedFields } from '../../state/proposals.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { listChoosable, type Scenario, type Scenarios } from '../../state/scenario.ts'
import { turnPrompt } from '../../state/turn.ts'
import type { Interpretation } from './dialects/interpret.ts'

type SettingsState = Pick<
  RuntimeState,
  'action_history' | 'prompts' | 'scenario' | 'output_style' | 'output_structure'
>

/** Who has analysed the request before the planner: a model, the embedding model its scenario alone, or neither. */
const readAnalysis = (state: SettingsState): unknown =>
  readBeginning(state).actions.find(({ node }) => node === 'understand')?.result.by

/** The scenarios of which the planner's first reply may choose one; the same in all its prompts until it has. */
export const listOpenScenarios = (state: SettingsState, scenarios: Scenarios): readonly Scenario[] => {
  const isOpen = state.scenario === '' && readOpening(state, 'open').includes('scenario')
  return isOpen && !['model', 'embedding'].includes(String(readAnalysis(state)))
    ? listChoosable(scenarios.list())
    : []
}

/** What a reply sets of the turn, where it is the first one: what the request, its scenario and understand leave open. */
export const readProposals = (
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
