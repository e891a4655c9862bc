import { ofBusiness } from '../../accounts/businesses.ts'
import { type Database, hasRow } from '../../infra/database/database.ts'
import { toMicro, toMoney } from '../../infra/lib/money.ts'
import { createResourceStore } from '../../infra/resources/resource-store.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createInvalidRequest } from '../../state/resource-schema.ts'
import { type BudgetView, budgetSchemas } from './budget-schemas.ts'

/** A budget with what is spent. Costs are millionths, as texts: bigint. */
export type BudgetRow = Pick<
  BudgetView,
  'id' | 'business_id' | 'user_id' | 'token_id' | 'currency' | 'requests_per_minute'
> & {
  daily_cost: string | null
  monthly_cost: string | null
  today: string
  this_month: string
  /** The clock of the database. */
  now: Date | string
}

/** `now()` and not the clock: the index finds the days of a time that does not move during the statement. */
const today = `(now() AT TIME ZONE 'UTC')::date`

const spentColumns = 's.today, s.this_month, now() AS now'
/** What is spent are at most 31 rows of its subject, found by their key. */
const spentJoin = `CROSS JOIN LATERAL (
  SELECT COALESCE(sum(cost_micro) FILTER (WHERE day = ${today}), 0)::text AS today, COALESCE(sum(cost_micro), 0)::text AS this_month
  FROM spending p WHERE p.tenant = t.tenant AND p.subject = t.subject AND p.currency = t.currency
    AND p.day >= date_trunc('month', now() AT TIME ZONE 'UTC')::date) s`

/** Selects the budgets `t` with what is spent. */
export const selectBudgets = `SELECT t.budget_id AS id, t.tenant AS business_id, t.user_id, t.token_id, t.currency, t.daily_cost,
  t.monthly_cost, t.requests_per_minute, ${spentColumns} FROM budgets t ${spentJoin}`

const toMicroOrNull = (units: number | null): number | null => units && toMicro(units)
const toMoneyOrNull = (micro: string | null): number | null => (micro === null ? null : toMoney(micro))

/** When a new day and a new month of UTC begin. */
export const findResets = (now: Date | string): { daily: Date; monthly: Date } => {
  const date = new Date(now)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return {
    daily: new Date(Date.UTC(year, month, date.getUTCDate() + 1)),
    monthly: new Date(Date.UTC(year, month + 1)),
  }
}

const toView = ({ daily_cost, monthly_cost, ...row }: BudgetRow): Partial<BudgetView> => {
  const { daily, monthly } = findResets(row.now)
  return {
    daily_cost: toMoneyOrNull(daily_cost),
    monthly_cost: toMoneyOrNull(monthly_cost),
    spent: { today: toMoney(row.today), this_month: toMoney(row.this_month) },
    resets_at: { daily: daily.toISOString(), monthly: monthly.toISOString() },
  }
}

/** The budgets of businesses, users and tokens. `changed`: a change takes effect here at once, elsewhere within a second. */
export const createBudgets = (database: Database, changed: () => void) =>
  createResourceStore<BudgetRow, typeof budgetSchemas>(
    { database, changed },
    {
      ...ofBusiness,
      fixed: { ...ofBusiness.fixed, user_id: 'user_id', token_id: 'token_id', currency: 'currency' },
      name: 'budget',
      prefix: 'bud',
      table: 'budgets',
      idColumn: 'budget_id',
      input: budgetSchemas.input,
      columns: spentColumns,
      joins: spentJoin,
      toInput: ({ daily_cost, monthly_cost }) => ({
        daily_cost: toMoneyOrNull(daily_cost),
        monthly_cost: toMoneyOrNull(monthly_cost),
      }),
      toView,
      findErrors: async (sql, { business_id, token_id }, { before }) => {
        if (!before) await checkToken(sql, business_id, token_id ?? null)
        return []
      },
      toValues: ({ daily_cost, monthly_cost }) => ({
        daily_cost: toMicroOrNull(daily_cost),
        monthly_cost: toMicroOrNull(monthly_cost),
      }),
      toTakenError: ({ currency }) =>
        new MasonError('already_exists', `there is a budget in ${currency} for the same already`, {
          remedy: 'change it with PATCH; GET /admin/v1/budgets lists the budgets',
        }),
    },
  )

const checkToken = async (sql: Sql, businessId: string, tokenId: string | null): Promise<void> => {
  if (tokenId === null) return
  const find = 'SELECT 1 FROM tokens WHERE token_id = $1 AND tenant = $2 AND revoked_at IS NULL'
  if (await hasRow(sql, find, [tokenId, businessId])) return
  const error = { pointer: '/token_id', detail: `the business has no token "${tokenId}"` }
  throw createInvalidRequest([error], 'GET /admin/v1/tokens lists the tokens')
}
