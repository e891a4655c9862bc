import type { BusinessRuns } from '../../engine/runs/business-runs.ts'
import type { GraphInfo } from '../../graph/definitions.ts'
import { renderTrajectory, type Trajectory } from './trajectory.ts'

/** The turn of a run in the language of the dialogue, as far as it has come. Null: no such run. */
export const readTrajectory = async (
  runs: Pick<BusinessRuns, 'run' | 'state'>,
  graph: Pick<GraphInfo, 'tool'>,
  runId: string,
): Promise<Trajectory | null> => {
  const run = await runs.run(runId)
  // read after the run, so that it has the action of an answer that the run has
  const state = run && (await runs.state(runId, true))
  if (!state) return null
  const serverOf = (tool: string) => graph.tool(tool)?.server
  return renderTrajectory(state.action_history[run.turn - 1] ?? [], { serverOf, answer: run.answer })
}
