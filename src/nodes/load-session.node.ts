import { defineNode } from '../graph/node.ts'
import { preview } from '../state/fold.ts'
import { openingPatch } from '../state/opening.ts'
import type { Patch } from '../state/patch.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import { type RuntimeState, stateFields } from '../state/runtime-state.ts'

/** Inherits the session's state and opens the new turn with what was asked for. */
export default defineNode({
  name: 'load-session',
  description: 'Inherits the state of the session and opens the new turn',
  reads: [...stateFields],
  writes: ['prompts', 'origin_files', 'scenario', 'output_style', 'output_structure', 'chat_history'],
  next: [{ tools: 'prepare' }, 'planner'],
  async run(state, { checkpoint, request, scenario, run, graph, memories, models }) {
    const patch = { ...emptied(state.output_structure), ...openingPatch(request, run.turn) }
    const opened = preview(whole(state), run.turn, patch)
    const able = graph.tools.filter(
      (tool) => tool.kinds.includes('prepare') && tool.name !== 'understand' && !graph.skips(tool, opened),
    )
    const busy = await Promise.all(able.map((tool) => tool.hasWork?.({ memories, models }, opened) ?? true))
    const next = able.filter((_, at) => busy[at])
    const files = request.files.map((file) => file.name)
    const given = givenBy(request)
    const rules = scenario?.rules ?? []
    return checkpoint(
      {
        summary: summaryOf(run.turn, files.length, state.action_history.flat().length),
        result: {
          turn: run.turn,
          files,
          ...(given.length > 0 && { given }),
          ...(rules.length > 0 && { rules }),
        },
        next: next.length > 0 ? next.map((tool) => tool.name) : ['planner'],
        relevance: 0,
      },
      patch,
    )
  },
})

/** What the caller has set, so that nobody need find it out. */
const givenBy = ({ scenario, output }: AdmittedRequest): string[] => [
  ...(scenario ? ['scenario'] : []),
  ...(output?.style ? ['output_style'] : []),
  ...(output?.structure ? ['output_structure'] : []),
]

/** A structure inherited from an earlier turn is emptied again. */
const emptied = (pieces: RuntimeState['output_structure']): Pick<Patch, 'output_structure'> =>
  pieces.length === 0
    ? {}
    : { output_structure: pieces.map(({ id, expected, type }) => ({ id, expected, type, content: null })) }

const whole = (view: RuntimeState): RuntimeState =>
  Object.fromEntries(stateFields.map((field) => [field, view[field]])) as unknown as RuntimeState

const summaryOf = (turn: number, files: number, earlier: number): string => {
  const inherited = earlier > 0 ? `, ${earlier} earlier actions at hand` : ''
  const given = files > 0 ? `, ${files} file${files === 1 ? '' : 's'} given` : ''
  return `Opened turn ${turn}${inherited}${given}`
}
