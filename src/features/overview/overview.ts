import { readCount } from '../../infra/database/database.ts'
import { type Dated, toIsoTimes } from '../../infra/database/row-times.ts'
import { toMoney } from '../../infra/lib/money.ts'
import type { Backlog } from '../../infra/telemetry/metrics.ts'
import { noCurrency } from '../../models/metering/ledger-rows.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { Overview, WorkerView } from './overview-schemas.ts'

/** Business by business, along the index of their lists. */
const runsStatement = `
  SELECT r.created_at >= $1::timestamptz AS is_late, count(*)::int AS submitted,
    (count(*) FILTER (WHERE r.status = 'completed'))::int AS completed, (count(*) FILTER (WHERE r.status = 'failed'))::int AS failed,
    (count(*) FILTER (WHERE r.status = 'cancelled'))::int AS cancelled
  FROM businesses b CROSS JOIN LATERAL (SELECT created_at, status FROM runs r WHERE r.tenant = b.tenant AND r.created_at >= $2::timestamptz) r
  GROUP BY 1`

const costsStatement = `
  SELECT currency, (COALESCE(sum(cost_micro) FILTER (WHERE at >= $1::timestamptz), 0))::text AS cost,
    (COALESCE(sum(cost_micro) FILTER (WHERE at < $1::timestamptz), 0))::text AS before
  FROM usage_ledger WHERE at >= $2::timestamptz AND currency <> '${noCurrency}' GROUP BY currency ORDER BY currency`

const effectsStatement = "SELECT count(*)::int AS count FROM effects WHERE status = 'unknown'"

type RunCounts = Overview['runs']
const none: RunCounts = { submitted: 0, completed: 0, failed: 0, cancelled: 0 }

/** What operators look at first. */
export const createOverview = (
  database: Sql,
  clock: Pick<Clock, 'now'>,
  readBacklog: () => Promise<Backlog>,
  /** Null: there are none. */
  count: Record<'rejectedJobs' | 'deadWebhooks', (() => Promise<number>) | null>,
) => ({
  /** The processes that work on runs, the latest first. */
  async workers(): Promise<WorkerView[]> {
    const { rows } = await database.query<Dated<WorkerView>>(
      'SELECT worker_id AS id, started_at, seen_at, running FROM workers ORDER BY started_at DESC, worker_id LIMIT 1000',
    )
    return rows.map(toIsoTimes)
  },
  /** The last `hours`, beside as many before them. */
  async read(hours: number): Promise<Overview> {
    const to = clock.now()
    const [from, before] = [1, 2].map((spans) => new Date(to.getTime() - spans * hours * 3_600_000))
    const spans = [from?.toISOString(), before?.toISOString()]
    const [runs, costs, unknownEffects, rejectedJobs, deadWebhooks, backlog] = await Promise.all([
      database.query<RunCounts & { is_late: boolean }>(runsStatement, spans),
      database.query<{ currency: string; cost: string; before: string }>(costsStatement, spans),
      readCount(database, effectsStatement),
      count.rejectedJobs?.(),
      count.deadWebhooks?.(),
      readBacklog(),
    ])
    const countOf = (isLate: boolean): RunCounts => {
      const row = runs.rows.find(({ is_late }) => is_late === isLate)
      if (!row) return none
      const { is_late: _, ...counts } = row
      return counts
    }
    const { workers, queued, running, oldest_ready_s, input_required, unlearned } = backlog
    return {
      from: spans[0] ?? '',
      to: to.toISOString(),
      runs: countOf(true),
      before: countOf(false),
      costs: costs.rows.map((row) => ({
        currency: row.currency,
        cost: toMoney(row.cost),
        before: toMoney(row.before),
      })),
      now: {
        workers,
        queued,
        running,
        oldest_ready_s,
        input_required,
        unlearned,
        unknown_effects: unknownEffects,
        rejected_jobs: rejectedJobs ?? 0,
        dead_webhooks: deadWebhooks ?? 0,
      },
    }
  },
})
