import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { Figures, ReconcileInput, Reconciliation, UsageReports } from '../../state/registry/usage.ts'
import { one } from '../database/database.ts'
import { microOf, moneyOf } from './cost.ts'
import { noCurrency } from './rows.ts'
import { endOf, startOf } from './span.ts'

const names = ['requests', 'prompt_tokens', 'completion_tokens', 'cost'] as const

/** Null: not given. Cost in millionths. */
type Sums = Record<(typeof names)[number], bigint | null>
type Side = { day: string; model: string; sums: Sums }
type Ours = Side & { estimated_requests: number; aliases: string[] }

type Row = Pick<Ours, 'day' | 'model' | 'estimated_requests' | 'aliases'> &
  Record<(typeof names)[number], string> & { currencies: string[] }

// what a vendor refused before it began is in our ledger, but in no bill
const statement = `
  SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, upstream_name AS model, json_agg(DISTINCT model_name) AS aliases,
    count(*)::text AS requests, (count(*) FILTER (WHERE estimated))::int AS estimated_requests,
    sum(prompt_tokens)::text AS prompt_tokens, sum(completion_tokens)::text AS completion_tokens,
    sum(cost_micro)::text AS cost, json_agg(DISTINCT currency) AS currencies
  FROM usage_ledger
  WHERE vendor_id = $1 AND at >= $2::timestamptz AND at < $3::timestamptz AND (status = 'succeeded' OR total_tokens > 0)
  GROUP BY 1, 2`

/** Our ledger beside a vendor's export, by day and model. */
export const createReconcile =
  (database: Sql): UsageReports['reconcile'] =>
  async ({ vendor_id, from, to, rows }): Promise<Reconciliation> => {
    await mustKnow(database, vendor_id)
    const found = await database.query<Row>(statement, [vendor_id, startOf(from), endOf(to)])
    const currencies = [...new Set(found.rows.flatMap((row) => row.currencies))].filter(
      (it) => it !== noCurrency,
    )
    const ours = new Map(found.rows.map((row) => [keyOf(row), oursOf(row, currencies.length > 1)]))
    const theirs = addUp(rows, ours)
    const keys = [...new Set([...ours.keys(), ...theirs.keys()])].toSorted()
    return {
      data: keys.map((key) => {
        const [mine, other] = [ours.get(key), theirs.get(key)]
        const { day, model } = (mine ?? other) as Side
        const difference = subtract(other?.sums, mine?.sums)
        const differs = names.some((name) => difference[name])
        const state = !mine ? 'only_theirs' : !other ? 'only_ours' : differs ? 'different' : 'equal'
        return {
          day,
          model,
          state,
          theirs: other ? shown(other.sums) : null,
          ours: mine ? shown(mine.sums) : null,
          difference: shown(difference),
          estimated_requests: mine?.estimated_requests ?? 0,
        }
      }),
      total: totalOf([...ours.values()], [...theirs.values()]),
      currency: currencies.length === 1 ? (currencies[0] ?? null) : null,
    }
  }

const mustKnow = async (database: Sql, vendorId: string): Promise<void> => {
  // one that was deleted may still send a bill
  const known = await one(
    database,
    `SELECT 1 FROM vendors WHERE vendor_id = $1 UNION ALL (SELECT 1 FROM usage_ledger WHERE vendor_id = $1 LIMIT 1) LIMIT 1`,
    [vendorId],
  )
  if (known) return
  throw new MasonError('invalid_request', `there is no vendor "${vendorId}"`, {
    remedy: 'GET /admin/v1/vendors lists the vendors there are',
    detail: { errors: [{ pointer: '/vendor_id', detail: 'is not the id of a vendor' }] },
  })
}

const keyOf = ({ day, model }: Pick<Side, 'day' | 'model'>): string => `${day} ${model}`

const oursOf = (row: Row, mixed: boolean): Ours => ({
  day: row.day,
  model: row.model,
  aliases: row.aliases,
  estimated_requests: row.estimated_requests,
  sums: {
    requests: BigInt(row.requests),
    prompt_tokens: BigInt(row.prompt_tokens),
    completion_tokens: BigInt(row.completion_tokens),
    // currencies are never summed together
    cost: mixed ? null : BigInt(row.cost),
  },
})

/** The export by day and model, under the vendor's own names of models. */
const addUp = (rows: ReconcileInput['rows'], ours: ReadonlyMap<string, Ours>): Map<string, Side> => {
  const upstream = new Map<string, string>()
  for (const { model, aliases } of ours.values()) for (const alias of aliases) upstream.set(alias, model)
  for (const { model } of ours.values()) upstream.set(model, model)
  const theirs = new Map<string, Side>()
  for (const row of rows) {
    const model = upstream.get(row.model) ?? row.model
    const key = keyOf({ day: row.day, model })
    theirs.set(key, { day: row.day, model, sums: add(theirs.get(key)?.sums, sumsOf(row)) })
  }
  return theirs
}

const sumsOf = (row: ReconcileInput['rows'][number]): Sums => {
  const count = (figure: number | undefined) => (figure === undefined ? null : BigInt(figure))
  return {
    requests: count(row.requests),
    prompt_tokens: count(row.prompt_tokens),
    completion_tokens: count(row.completion_tokens),
    cost: row.cost === undefined ? null : microOf(row.cost),
  }
}

const combine = (
  a: Sums | undefined,
  b: Sums | undefined,
  by: (a: bigint | null, b: bigint | null) => bigint | null,
): Sums => {
  const at = (name: (typeof names)[number]) => by(a ? a[name] : 0n, b ? b[name] : 0n)
  return {
    requests: at('requests'),
    prompt_tokens: at('prompt_tokens'),
    completion_tokens: at('completion_tokens'),
    cost: at('cost'),
  }
}

/** A figure that some rows have and others lack is the sum of those that have it. */
const add = (a: Sums | undefined, b: Sums): Sums =>
  a ? combine(a, b, (one, other) => (one === null ? other : other === null ? one : one + other)) : b

const subtract = (a: Sums | undefined, b: Sums | undefined): Sums =>
  combine(a, b, (one, other) => (one === null || other === null ? null : one - other))

const shown = (sums: Sums): Figures => ({
  requests: sums.requests === null ? null : Number(sums.requests),
  prompt_tokens: sums.prompt_tokens === null ? null : Number(sums.prompt_tokens),
  completion_tokens: sums.completion_tokens === null ? null : Number(sums.completion_tokens),
  cost: sums.cost === null ? null : moneyOf(sums.cost),
})

const totalOf = (ours: readonly Side[], theirs: readonly Side[]): Reconciliation['total'] => {
  const sum = (sides: readonly Side[]) =>
    sides.reduce<Sums | undefined>((all, side) => add(all, side.sums), undefined)
  const [mine, other] = [sum(ours), sum(theirs)]
  return {
    theirs: other ? shown(other) : null,
    ours: mine ? shown(mine) : null,
    difference: shown(subtract(other, mine)),
  }
}
