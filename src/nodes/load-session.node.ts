import { z } from 'zod'
import { chooseAnalysis, lastPrepareTool, recallTool } from '../graph/default-next.ts'
import { defineNode } from '../graph/definitions.ts'
import { fillAction } from '../state/checkpoint.ts'
import { applyAction } from '../state/fold.ts'
import { createOpeningPatch, openStructure } from '../state/opening-patch.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import { outputFieldSchema, type RuntimeState, stateFields } from '../state/runtime-state.ts'
import { listChoosable } from '../state/scenario.ts'

/** Inherits the session's state and opens the new turn with the request. */
export default defineNode({
  name: 'load-session',
  description: 'Inherits the state of the session and opens the new turn',
  reads: [...stateFields],
  writes: [
    'prompts',
    'task_goals',
    'origin_files',
    'scenario',
    'output_style',
    'output_structure',
    'chat_history',
  ],
  next: [{ tools: 'prepare' }, 'planner'],
  async run(state, { checkpoint, request, scenario, scenarios, run, graph, clock, hasWork }) {
    const style = findSessionStyle(state)
    const patch = {
      // free text held for its own turn, a row holds until a request names another scenario
      ...(state.scenario !== '' && scenario === null && { scenario: '' }),
      // what a model proposed held for its own turn
      ...(state.output_style !== style && { output_style: style }),
      ...createOpeningPatch(request, run.turn),
      output_structure: openStructure(request, () => findSessionStructure(state)),
    }
    const files = request.files.map((file) => file.name)
    const given = listSetFields(request)
    const rules = scenario?.rules ?? []
    const isOpen = (patch.scenario ?? state.scenario) === '' && listChoosable(scenarios.list()).length > 0
    const draft = {
      summary: toSummary(run.turn, files.length, state.action_history.flat().length),
      result: {
        turn: run.turn,
        files,
        started_at: clock.now().toISOString(),
        time_zone: clock.timeZone?.() ?? 'UTC',
        ...(given.length > 0 && { given }),
        // the words of a request are the user's; what a model proposes in their place may come from a file
        ...(Array.isArray(request.output?.structure) && { structure: request.output.structure }),
        ...(request.output?.style && { output_style: request.output.style }),
        ...(request.scenario && { scenario: request.scenario }),
        ...(isOpen && { open: ['scenario'] }),
        ...(rules.length > 0 && { rules }),
      },
      relevance: 0,
    }
    const body = fillAction('load-session', { ...draft, next: [] })
    const opened = applyAction(copyState(state), { seq: 0, turn: run.turn, body, patch })
    const candidates = graph.tools.filter(
      ({ name, kinds }) => kinds.includes('prepare') && name !== lastPrepareTool,
    )
    const withWork = await Promise.all(candidates.map((tool) => hasWork(tool, opened)))
    const names: string[] = candidates.filter((_, index) => withWork[index]).map(({ name }) => name)
    const start = chooseAnalysis(graph, opened)
    const later: string[] = start === lastPrepareTool ? names.filter((name) => name === recallTool) : []
    const first = names.filter((name) => !later.includes(name))
    return checkpoint(
      {
        ...draft,
        result: { ...draft.result, ...(later.length > 0 && { later }) },
        next: first.length > 0 ? first : [start],
      },
      patch,
    )
  },
})

/** What the request sets, so that no tool has to find it out. */
const listSetFields = ({ scenario, output }: AdmittedRequest): string[] => [
  ...(scenario ? ['scenario'] : []),
  ...(output?.style ? ['output_style'] : []),
  ...(output?.structure ? ['output_structure'] : []),
]

/** What the latest request of the session that set this has set; what a model proposed is not in it. */
const findRequested = (
  { action_history }: Pick<RuntimeState, 'action_history'>,
  field: 'output_style' | 'structure',
): unknown =>
  action_history.flat().findLast(({ node, result }) => node === 'load-session' && result[field])?.result[
    field
  ]

const findSessionStyle = (state: Pick<RuntimeState, 'action_history'>): string =>
  z.string().catch('').parse(findRequested(state, 'output_style'))

const findSessionStructure = (state: Pick<RuntimeState, 'action_history'>) =>
  structureSchema.catch([]).parse(findRequested(state, 'structure'))

const structureSchema = z.array(outputFieldSchema.omit({ content: true }))

const copyState = (view: RuntimeState): RuntimeState =>
  Object.fromEntries(stateFields.map((field) => [field, view[field]])) as unknown as RuntimeState

const toSummary = (turn: number, files: number, earlier: number): string => {
  const inherited = earlier > 0 ? `, ${earlier} earlier actions at hand` : ''
  const given = files > 0 ? `, ${files} file${files === 1 ? '' : 's'} given` : ''
  return `Opened turn ${turn}${inherited}${given}`
}
