import { LRUCache } from 'lru-cache'
import { createSharedCounter, type SharedCount, toMinuteStatement } from '../../accounts/shared-counter.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { toMoney } from '../../infra/lib/money.ts'
import { MasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { BudgetChecks, Spender } from '../core.ref.ts'
import { type BudgetRow, findResets, selectBudgets } from './budgets.ts'

/** A limit on costs that is reached. */
type ReachedBudget = { budget: BudgetRow; limit: 'daily_cost' | 'monthly_cost'; resetsAt: Date }

/** What is spent is read once a second at admission. */
const cacheMs = 1000
const maxSubjects = 1000

const listStatement = `
  ${selectBudgets} WHERE t.tenant = $1 AND t.subject = ANY (ARRAY['business', 'user:' || $2::text,
    'token:' || COALESCE($3::text, (SELECT q.token_id FROM run_requests q WHERE q.tenant = $1 AND q.run_id = $4::text))])`

const countStatement = toMinuteStatement(
  'budget_requests',
  'budget_id',
  'budget_id, tenant',
  'SELECT budget_id, tenant, requests_per_minute AS max FROM budgets WHERE tenant = $1 AND budget_id = $2',
)

/** The limit on costs that is reached and opens last, or null. */
const findReached = (budgets: readonly BudgetRow[]): ReachedBudget | null => {
  const reached = budgets.flatMap((budget): ReachedBudget[] => {
    const { daily, monthly } = findResets(budget.now)
    const isReached = (spent: string, max: string | null): boolean =>
      max !== null && BigInt(spent) >= BigInt(max)
    return [
      ...(isReached(budget.this_month, budget.monthly_cost)
        ? [{ budget, limit: 'monthly_cost' as const, resetsAt: monthly }]
        : []),
      ...(isReached(budget.today, budget.daily_cost)
        ? [{ budget, limit: 'daily_cost' as const, resetsAt: daily }]
        : []),
    ]
  })
  return reached.toSorted((a, b) => b.resetsAt.getTime() - a.resetsAt.getTime())[0] ?? null
}

/** Checks budgets before something is started, and while a run goes on. `flush` enters in the ledger what this process settled. */
export const createBudgetChecks = (
  database: Database,
  clock: Clock,
  flush: () => Promise<void>,
): BudgetChecks => {
  const list = ({ business_id, user_id, token_id = null, run_id = null }: Spender): Promise<BudgetRow[]> =>
    database.asBusiness(
      business_id,
      async (sql) =>
        (await sql.query<BudgetRow>(listStatement, [business_id, user_id, token_id, run_id])).rows,
      { pipelined: true },
    )
  /** Who asked before a change gets what was read, and it is not kept: by itself the cache rejects a read that `forget` comes upon. */
  const cache = <Value extends object>(read: (name: string) => Promise<Value>) =>
    new LRUCache<string, Value>({
      max: 10_000,
      ttl: cacheMs,
      fetchMethod: (name) => read(name),
      ignoreFetchAbort: true,
    })
  /** Whose budgets a business has; of very many all are read. Most have none, and most users have none of their own. */
  const subjects = cache(async (business) => {
    const text = `SELECT subject FROM budgets WHERE tenant = $1 LIMIT ${maxSubjects + 1}`
    const { rows } = await database.asBusiness(
      business,
      (sql) => sql.query<{ subject: string }>(text, [business]),
      { pipelined: true },
    )
    const names = new Set(rows.map(({ subject }) => subject))
    return { any: rows.length > 0, has: (name: string) => rows.length > maxSubjects || names.has(name) }
  })
  const lists = cache((spender) => list(JSON.parse(spender)))
  const addRequest = createSharedCounter(clock, (name, own) => {
    const [business, id] = JSON.parse(name) as [string, string]
    return database.asBusiness(
      business,
      (sql) => queryOne<SharedCount>(sql, countStatement, [business, id, own]),
      { pipelined: true },
    )
  })
  return {
    forget() {
      subjects.clear()
      lists.clear()
    },
    async check({ business_id, user_id, token_id = null }) {
      const known = await subjects.fetch(business_id)
      if (!known?.any) return
      const spender: Spender = {
        business_id,
        user_id: known.has(`user:${user_id}`) ? user_id : null,
        token_id: known.has(`token:${token_id}`) ? token_id : null,
      }
      const budgets = (await lists.fetch(JSON.stringify(spender))) ?? []
      const reached = findReached(budgets)
      if (reached) throw createBudgetError(reached)
      for (const budget of budgets) {
        if (budget.requests_per_minute === null) continue
        const full = await addRequest(JSON.stringify([business_id, budget.id]), 1)
        if (full) throw createRequestsError(budget, full.left_s - (clock.monotonicMs() - full.at) / 1000)
      }
    },
    async findReached(spender) {
      if (!(await subjects.fetch(spender.business_id))?.any) return null
      await flush()
      const reached = findReached(await list(spender))
      return reached && { budget_id: reached.budget.id, limit: reached.limit }
    },
  }
}

const describeSubject = ({ user_id, token_id, business_id }: BudgetRow): string =>
  user_id !== null
    ? `user "${user_id}"`
    : token_id !== null
      ? `token "${token_id}"`
      : `business "${business_id}"`

const createError = (budget: BudgetRow, limit: string, what: string, retry_after_s: number): MasonError =>
  new MasonError(
    'budget_exhausted',
    `the budget of ${describeSubject(budget)} ${what}; an operator raises ${limit} with PATCH /admin/v1/budgets/${budget.id}`,
    {
      remedy: 'try again after Retry-After, or ask an operator to raise the budget',
      detail: { retry_after_s: Math.max(1, retry_after_s), budget_id: budget.id, limit },
    },
  )

const createBudgetError = ({ budget, limit, resetsAt }: ReachedBudget): MasonError => {
  const { currency, now, today, this_month } = budget
  const spent = toMoney(limit === 'daily_cost' ? today : this_month)
  const span = limit === 'daily_cost' ? 'day' : 'month'
  const max = toMoney(budget[limit] ?? '0')
  const what = `allows ${max} ${currency} a ${span}, ${spent} are spent, and it resets at ${resetsAt.toISOString()}`
  return createError(budget, limit, what, (resetsAt.getTime() - new Date(now).getTime()) / 1000)
}

const createRequestsError = (budget: BudgetRow, leftS: number): MasonError =>
  createError(
    budget,
    'requests_per_minute',
    `allows ${budget.requests_per_minute} runs and calls a minute, they were started, and it resets in ${Math.max(1, Math.ceil(leftS))} s`,
    leftS,
  )
