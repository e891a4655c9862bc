import type { BusinessRuns } from '../../engine/runs/business-runs.ts'
import type { GraphInfo } from '../../graph/definitions.ts'
import type { RunView } from '../../state/run-view.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { renderTrajectory, type Trajectory } from './trajectory.ts'

type TurnRun = { run: RunView; state: RuntimeState }

/** The turn of a run in the language of the dialogue, as far as it has come, and what it was made of. Null: no such run. */
export const readTrajectory = async (
  runs: Pick<BusinessRuns, 'run' | 'state'>,
  graph: Pick<GraphInfo, 'tool'>,
  runId: string,
): Promise<(Trajectory & TurnRun) | null> => {
  const run = await runs.run(runId)
  // read after the run, so that it has the action of an answer that the run has
  const state = run && (await runs.state(runId, true))
  if (!state) return null
  const serverOf = (tool: string) => graph.tool(tool)?.server
  const actions = state.action_history[run.turn - 1] ?? []
  return { ...renderTrajectory(actions, { serverOf, answer: run.answer }), run, state }
}
