import { z } from 'zod'
import { lastPrepareTool } from '../graph/default-next.ts'
import { defineNode } from '../graph/definitions.ts'
import { previewPatch } from '../state/fold.ts'
import { createOpeningPatch, openStructure } from '../state/opening-patch.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import { outputFieldSchema, type RuntimeState, stateFields } from '../state/runtime-state.ts'
import type { Scenario } from '../state/scenario.ts'

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
    const patch = {
      // free text held for its own turn, a row holds until a request names another scenario
      ...(state.scenario !== '' && scenario === null && { scenario: '' }),
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
          ...(opened.scenario === '' && scenarios.list().some(isDescribed) && { open: ['scenario'] }),
          ...(rules.length > 0 && { rules }),
        },
        next: next.length > 0 ? next.map((tool) => tool.name) : ['planner'],
        relevance: 0,
      },
      patch,
    )
  },
})

/** Whether there is anything to choose a row by. */
const isDescribed = ({ description, examples }: Scenario): boolean =>
  description !== '' || examples.length > 0

/** What the request sets, so that no tool has to find it out. */
const listSetFields = ({ scenario, output }: AdmittedRequest): string[] => [
  ...(scenario ? ['scenario'] : []),
  ...(output?.style ? ['output_style'] : []),
  ...(output?.structure ? ['output_structure'] : []),
]

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
