import { z } from 'zod'
import { lastPrepareTool } from '../graph/default-next.ts'
import { defineNode } from '../graph/definitions.ts'
import { previewPatch } from '../state/fold.ts'
import { createOpeningPatch, openStructure } from '../state/opening-patch.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import { outputFieldSchema, type RuntimeState, stateFields } from '../state/runtime-state.ts'
import { listScenarioTexts } from '../state/scenario.ts'

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
    const opened = previewPatch(copyState(state), run.turn, patch)
    const candidates = graph.tools.filter(
      ({ name, kinds }) => kinds.includes('prepare') && name !== lastPrepareTool,
    )
    const withWork = await Promise.all(candidates.map((tool) => hasWork(tool, opened)))
    const next = candidates.filter((_, index) => withWork[index])
    const files = request.files.map((file) => file.name)
    const given = listSetFields(request)
    const rules = scenario?.rules ?? []
    return checkpoint(
      {
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
          ...(opened.scenario === '' &&
            scenarios.list().some((row) => listScenarioTexts(row).length > 0) && { open: ['scenario'] }),
          ...(rules.length > 0 && { rules }),
        },
        next: next.length > 0 ? next.map((tool) => tool.name) : ['planner'],
        relevance: 0,
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

/** The style that the latest request of the session with one has set. */
const findSessionStyle = ({ action_history }: Pick<RuntimeState, 'action_history'>): string => {
  const opened = action_history
    .flat()
    .findLast(({ node, result }) => node === 'load-session' && result.output_style)
  return typeof opened?.result.output_style === 'string' ? opened.result.output_style : ''
}

/** What the latest request of the session that named a structure has named; what understand proposed is not in it. */
const findSessionStructure = ({ action_history }: Pick<RuntimeState, 'action_history'>) => {
  const named = action_history
    .flat()
    .findLast(({ node, result }) => node === 'load-session' && result.structure)
  const structure = structureSchema.safeParse(named?.result.structure)
  return structure.success ? structure.data : []
}

const structureSchema = z.array(outputFieldSchema.omit({ content: true }))

const copyState = (view: RuntimeState): RuntimeState =>
  Object.fromEntries(stateFields.map((field) => [field, view[field]])) as unknown as RuntimeState

const toSummary = (turn: number, files: number, earlier: number): string => {
  const inherited = earlier > 0 ? `, ${earlier} earlier actions at hand` : ''
  const given = files > 0 ? `, ${files} file${files === 1 ? '' : 's'} given` : ''
  return `Opened turn ${turn}${inherited}${given}`
}
