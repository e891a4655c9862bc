import { Queue } from 'bullmq'
import { openRuntime } from '../../src/app/open-runtime.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'
import type { Case, Variant } from '../case.ts'
import { query } from '../support/database.ts'

const jobs = 5000
const log = { debug() {}, info() {}, warn() {}, error() {} }

/** Jobs that wait on Redis until a worker starts; then from its first admission until all are admitted or held. The runs are not executed. */
const takeAll =
  (sessions: number): Variant =>
  async (place) => {
    const count = place.count(jobs)
    await query(place, `INSERT INTO businesses (tenant, quota_queued_runs) VALUES ('default', 1000000)`)
    const queue = new Queue('mason-runs', {
      connection: { url: place.redisUrl },
      prefix: place.config.queuePrefix,
    })
    for (let from = 0; from < count; from += 500)
      await queue.addBulk(
        Array.from({ length: Math.min(500, count - from) }, (_, n) => ({
          name: 'run',
          data: {
            ...{ prompt: `${from + n}`, user_id: 'ann', delay_ms: 86_400_000 },
            session_id: `s${(from + n) % sessions}`,
          },
          opts: { jobId: `job-${from + n}` },
        })),
      )
    const runtime = await openRuntime(place.config, { models: noOpModels(), log })
    const readDone = async (): Promise<number> => {
      const [row] = await query<{ n: number }>(
        place,
        'SELECT ((SELECT count(*) FROM runs) + (SELECT count(*) FROM held_jobs))::int AS n',
      )
      return row?.n ?? 0
    }
    await runtime.startWorker({ concurrency: 1 })
    let [first, since] = [0, 0]
    for (;;) {
      const done = await readDone()
      if (done > 0 && since === 0) [first, since] = [done, performance.now()]
      if (done >= count) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const perSecond = ((count - first) / (performance.now() - since)) * 1000
    const [swapped] = await query<{ n: number }>(
      place,
      `SELECT count(*)::int AS n FROM (SELECT (q.request->>'prompt')::int AS prompt,
         lag((q.request->>'prompt')::int) OVER (PARTITION BY r.session_id ORDER BY r.turn) AS before
       FROM runs r JOIN run_requests q USING (tenant, run_id)) t WHERE prompt < before`,
    )
    await runtime.close()
    await queue.close()
    return { 'jobs/s': perSecond, swapped: swapped?.n ?? 0 }
  }

const intakeCase: Case = {
  about: 'jobs of the public queue that are admitted in order, of many sessions and of one',
  ours: { '1,000 sessions': takeAll(1000), 'one session': takeAll(1) },
}

export default intakeCase
