import type { Runtime } from '../../src/app/api.ts'
import { openRuntime } from '../../src/app/open-runtime.ts'
import { type NoOpOptions, noOpModels } from '../../test/support/no-op-models.ts'
import { query } from './database.ts'
import type { Place } from './place.ts'

/** A run of `rounds` calls of the no-op model lays this many actions. */
export const actionsOf = (rounds: number): number => 5 + 3 * rounds

export const openNoOpRuntime = (place: Place, options: NoOpOptions = {}): Promise<Runtime> =>
  openRuntime(place.config, { models: noOpModels(options) })

/** Queues runs, each in a session of its own. Nothing works on them before a worker starts. */
export const submitRuns = async (runtime: Runtime, count: number): Promise<string[]> => {
  const ids: string[] = []
  for (let n = 0; n < count; n++)
    ids.push((await runtime.of('default').submit({ prompt: 'hello', user_id: 'u1' })).run.id)
  return ids
}

/** Waits until every run has ended; a look now and then, which takes nothing from who does the work. */
export const allEnded = async (place: Place): Promise<void> => {
  for (;;) {
    const [row] = await query<{ open: number }>(
      place,
      `SELECT count(*)::int AS open FROM runs WHERE status IN ('queued', 'running')`,
    )
    if (row?.open === 0) break
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  const [row] = await query<{ bad: number }>(
    place,
    `SELECT count(*)::int AS bad FROM runs WHERE finish_reason IS DISTINCT FROM 'answered'`,
  )
  if (row?.bad !== 0) throw new Error(`${row?.bad} runs did not end as they should: nothing was measured`)
}
