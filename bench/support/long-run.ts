import { randomBytes } from 'node:crypto'
import type { Runtime } from '../../src/app/api.ts'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Models } from '../../src/state/ports/models.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'
import { query } from './database.ts'
import { actionsOf } from './no-op-runs.ts'
import type { Place } from './place.ts'

const text = randomBytes(7000).toString('base64')

/**
 * The no-op model, talking: beside each of its calls, a third of all actions, the planner says 3 to 8 KB that cannot be
 * compressed. So an action is 2 KB on average, and of no size that happens to fill the database's pages well or badly.
 */
const talkingModels = (rounds: number): Models => {
  const models = noOpModels({ rounds })
  let said = 0
  return {
    ...models,
    async call(request, signal) {
      const reply = await models.call(request, signal)
      if (reply.tool_calls.length === 0) return reply
      said = (said + 1777) % 5001
      return { ...reply, text: text.slice(0, 3000 + said) }
    },
  }
}

export type LongRun = { runId: string; ms: number; actions: number; payload: number }

/** Does one run of about so many actions, by the database's clock from its claim to its end. */
export const longRun = async (place: Place, actions: number): Promise<LongRun> => {
  const rounds = Math.max(1, Math.round((actions - 5) / 3))
  const runtime = await openRuntime(place.config, { models: talkingModels(rounds) })
  try {
    await runtime.startWorker({ concurrency: 1 })
    return await follow(runtime, place, rounds)
  } finally {
    await runtime.close()
  }
}

const follow = async (runtime: Runtime, place: Place, rounds: number): Promise<LongRun> => {
  const api = runtime.of('default')
  const limits = { max_steps: 100_000, timeout_ms: 3_600_000 }
  // a user of its own: it recalls nothing of the runs before, which would be one action more
  const user_id = randomBytes(6).toString('hex')
  const { id } = (await api.submit({ prompt: 'hello', user_id, limits })).run
  const { finish_reason } = await api.wait(id, AbortSignal.timeout(1_800_000))
  const [row] = await query<{ ms: number; actions: number; payload: number }>(
    place,
    `SELECT extract(epoch FROM ended_at - started_at)::float8 * 1000 AS ms, count(*)::int AS actions,
       sum(octet_length(body::text) + octet_length(patch::text))::float8 AS payload
     FROM runs JOIN actions USING (tenant, run_id) WHERE run_id = $1 GROUP BY started_at, ended_at`,
    [id],
  )
  if (finish_reason !== 'answered' || row?.actions !== actionsOf(rounds))
    throw new Error(`the run ended as ${finish_reason} after ${row?.actions} actions`)
  return { runId: id, ...row }
}

/** The bytes that all tables of a schema and their indexes take up. */
export const storedBytes = async (place: Place, schema: 'mason' | 'public'): Promise<number> => {
  const [row] = await query<{ bytes: number }>(
    place,
    `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::float8 AS bytes FROM pg_class
     WHERE relkind = 'r' AND relnamespace = $1::regnamespace`,
    [schema],
  )
  return row?.bytes ?? 0
}
