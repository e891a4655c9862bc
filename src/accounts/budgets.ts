import { randomBytes } from 'node:crypto'
import { type Database, queryOne } from '../infra/database/database.ts'
import { readPage } from '../infra/database/pagination.ts'
import { toMicro, toMoney } from '../infra/lib/money.ts'
import { MasonError } from '../state/errors.ts'
import type { Page } from '../state/run-view.ts'
import type { BudgetChange, BudgetInput, BudgetView } from './budget-schemas.ts'
import { ensureBusiness } from './businesses.ts'

/** A budget with what is spent. Costs are millionths, as texts: bigint. */
export type BudgetRow = Pick<
  BudgetView,
  'id' | 'business_id' | 'user_id' | 'token_id' | 'currency' | 'requests_per_minute'
> & {
  daily_cost: string | null
  monthly_cost: string | null
  today: string
  this_month: string
  created_at: Date
  updated_at: Date
  /** The clock of the database. */
  now: Date
}

/** `now()` and not the clock: the index finds the days of a time that does not move during the statement. */
const today = `(now() AT TIME ZONE 'UTC')::date`

/** The columns of a budget `b`. What is spent are at most 31 rows of its subject, found by their key. */
export const budgetColumns = `b.budget_id AS id, b.tenant AS business_id, b.user_id, b.token_id, b.currency, b.daily_cost, b.monthly_cost,
  b.requests_per_minute, b.created_at, b.updated_at, s.today, s.this_month, now() AS now`

/** The budgets `b` with what is spent. */
export const budgetTables = `budgets b CROSS JOIN LATERAL (
  SELECT COALESCE(sum(cost_micro) FILTER (WHERE day = ${today}), 0)::text AS today, COALESCE(sum(cost_micro), 0)::text AS this_month
  FROM spending p WHERE p.tenant = b.tenant AND p.subject = b.subject AND p.currency = b.currency
    AND p.day >= date_trunc('month', now() AT TIME ZONE 'UTC')::date) s`

const toMicroOrNull = (units: number | null): number | null => units && toMicro(units)

/** When a new day and a new month of UTC begin. */
export const findResets = (now: Date): { daily: Date; monthly: Date } => {
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  return {
    daily: new Date(Date.UTC(year, month, now.getUTCDate() + 1)),
    monthly: new Date(Date.UTC(year, month + 1)),
  }
}

const toView = (row: BudgetRow): BudgetView => {
  const { today: spentToday, this_month, now, daily_cost, monthly_cost, ...same } = row
  const { daily, monthly } = findResets(now)
  return {
    ...same,
    daily_cost: daily_cost === null ? null : toMoney(daily_cost),
    monthly_cost: monthly_cost === null ? null : toMoney(monthly_cost),
    spent: { today: toMoney(spentToday), this_month: toMoney(this_month) },
    resets_at: { daily: daily.toISOString(), monthly: monthly.toISOString() },
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/** The budgets of businesses, users and tokens. `changed`: a change takes effect here at once, elsewhere within a second. */
export const createBudgets = (database: Database, changed: () => void) => {
  const get = async (id: string): Promise<BudgetView | null> => {
    const row = await queryOne<BudgetRow>(
      database,
      `SELECT ${budgetColumns} FROM ${budgetTables} WHERE b.budget_id = $1`,
      [id],
    )
    return row && toView(row)
  }
  return {
    get,
    /** Throws `already_exists`, and `invalid_request` for a token that the business does not have. */
    async create(input: BudgetInput): Promise<BudgetView> {
      const { business_id, user_id = null, token_id = null, currency, requests_per_minute } = input
      await ensureBusiness(database, business_id)
      await checkToken(database, business_id, token_id)
      const id = `bud_${randomBytes(12).toString('hex')}`
      const row = await queryOne(
        database,
        `INSERT INTO budgets (budget_id, tenant, user_id, token_id, currency, daily_cost, monthly_cost, requests_per_minute)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, subject, currency) DO NOTHING RETURNING budget_id`,
        [
          id,
          business_id,
          user_id,
          token_id,
          currency,
          toMicroOrNull(input.daily_cost),
          toMicroOrNull(input.monthly_cost),
          requests_per_minute,
        ],
      )
      if (!row)
        throw new MasonError('already_exists', `there is a budget in ${currency} for the same already`, {
          remedy: 'change it with PATCH; GET /admin/v1/budgets lists the budgets',
        })
      changed()
      return (await get(id)) as BudgetView
    },
    async change(id: string, change: BudgetChange): Promise<BudgetView | null> {
      const values = {
        ...change,
        ...(change.daily_cost !== undefined && { daily_cost: toMicroOrNull(change.daily_cost) }),
        ...(change.monthly_cost !== undefined && { monthly_cost: toMicroOrNull(change.monthly_cost) }),
      }
      const sets = Object.keys(values).map((column, at) => `${column} = $${at + 2}, `)
      await database.query(
        `UPDATE budgets SET ${sets.join('')}updated_at = clock_timestamp() WHERE budget_id = $1`,
        [id, ...Object.values(values)],
      )
      changed()
      return get(id)
    },
    async remove(id: string): Promise<boolean> {
      const row = await queryOne(database, 'DELETE FROM budgets WHERE budget_id = $1 RETURNING budget_id', [
        id,
      ])
      changed()
      return row !== null
    },
    list(filter: { business_id?: string; limit: number; cursor?: string }): Promise<Page<BudgetView>> {
      const list = {
        select: budgetColumns,
        from: budgetTables,
        where: '($1::text IS NULL OR b.tenant = $1)',
        values: [filter.business_id ?? null],
        at: 'b.created_at',
        id: 'b.budget_id',
      }
      return readPage<BudgetRow, BudgetView>(database, list, filter, toView)
    },
  }
}

/** See `createBudgets`. */
export type Budgets = ReturnType<typeof createBudgets>

const checkToken = async (database: Database, businessId: string, tokenId: string | null): Promise<void> => {
  if (tokenId === null) return
  const find = 'SELECT 1 FROM tokens WHERE token_id = $1 AND tenant = $2 AND revoked_at IS NULL'
  if (await queryOne(database, find, [tokenId, businessId])) return
  const error = { pointer: '/token_id', detail: `the business has no token "${tokenId}"` }
  throw new MasonError('invalid_request', `${error.pointer}: ${error.detail}`, {
    remedy: 'GET /admin/v1/tokens lists the tokens',
    detail: { errors: [error] },
  })
}
