import { queryOne } from '../../infra/database/database.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { ReconcileInput, Reconciliation, UsageFigures, UsageReports } from '../schemas/usage-report.ts'
import { toMicro, toMoney } from './cost.ts'
import { noCurrency } from './ledger-rows.ts'
import { createUsageReport, toSpanEnd, toSpanStart } from './usage-report.ts'

const figureNames = ['requests', 'prompt_tokens', 'completion_tokens', 'cost'] as const

type Figures<Value> = Record<(typeof figureNames)[number], Value>

const createFigures = <Value>(read: (name: (typeof figureNames)[number]) => Value) =>
  Object.fromEntries(figureNames.map((name) => [name, read(name)])) as Figures<Value>

/** Null: not given. Cost in millionths. */
type Sums = Figures<bigint | null>
type Side = { day: string; model: string; sums: Sums }
type Ours = Side & { estimated_requests: number; aliases: string[] }

type Row = Pick<Ours, 'day' | 'model' | 'estimated_requests' | 'aliases'> &
  Figures<string> & { currencies: string[] }

// a request that the vendor refused is in our ledger, but in no bill
const statement = `
  SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, upstream_name AS model, json_agg(DISTINCT model_name) AS aliases,
    count(*)::text AS requests, (count(*) FILTER (WHERE estimated))::int AS estimated_requests,
    sum(prompt_tokens)::text AS prompt_tokens, sum(completion_tokens)::text AS completion_tokens,
    sum(cost_micro)::text AS cost, json_agg(DISTINCT currency) AS currencies
  FROM usage_ledger
  WHERE vendor_id = $1 AND at >= $2::timestamptz AND at < $3::timestamptz AND (status = 'succeeded' OR total_tokens > 0)
  GROUP BY 1, 2`

/** Compares our ledger with a vendor's export, by day and model. */
const createReconcile =
  (database: Sql): UsageReports['reconcile'] =>
  async ({ vendor_id, from, to, rows }): Promise<Reconciliation> => {
    await assertVendorExists(database, vendor_id)
    const ledger = await database.query<Row>(statement, [vendor_id, toSpanStart(from), toSpanEnd(to)])
    const currencies = [...new Set(ledger.rows.flatMap((row) => row.currencies))].filter(
      (it) => it !== noCurrency,
    )
    const ours = new Map(ledger.rows.map((row) => [toKey(row), toOurs(row, currencies.length > 1)]))
    const theirs = sumByModel(rows, ours)
    const keys = [...new Set([...ours.keys(), ...theirs.keys()])].toSorted()
    return {
      data: keys.map((key) => {
        const [mine, other] = [ours.get(key), theirs.get(key)]
        const { day, model } = (mine ?? other) as Side
        const difference = subtract(other?.sums, mine?.sums)
        const differs = figureNames.some((name) => difference[name])
        const state = !mine ? 'only_theirs' : !other ? 'only_ours' : differs ? 'different' : 'equal'
        return {
          day,
          model,
          state,
          theirs: other ? toFigures(other.sums) : null,
          ours: mine ? toFigures(mine.sums) : null,
          difference: toFigures(difference),
          estimated_requests: mine?.estimated_requests ?? 0,
        }
      }),
      total: toTotal([...ours.values()], [...theirs.values()]),
      currency: currencies.length === 1 ? (currencies[0] ?? null) : null,
    }
  }

const assertVendorExists = async (database: Sql, vendorId: string): Promise<void> => {
  // a deleted vendor may still send a bill
  const vendor = await queryOne(
    database,
    `SELECT 1 FROM vendors WHERE vendor_id = $1 UNION ALL (SELECT 1 FROM usage_ledger WHERE vendor_id = $1 LIMIT 1) LIMIT 1`,
    [vendorId],
  )
  if (vendor) return
  throw new MasonError('invalid_request', `there is no vendor "${vendorId}"`, {
    remedy: 'GET /admin/v1/vendors lists the vendors',
    detail: { errors: [{ pointer: '/vendor_id', detail: 'is not the id of a vendor' }] },
  })
}

const toKey = ({ day, model }: Pick<Side, 'day' | 'model'>): string => `${day} ${model}`

const toOurs = (row: Row, mixed: boolean): Ours => ({
  day: row.day,
  model: row.model,
  aliases: row.aliases,
  estimated_requests: row.estimated_requests,
  // sums of two currencies mean nothing
  sums: createFigures((name) => (name === 'cost' && mixed ? null : BigInt(row[name]))),
})

/** The export by day and model, under the vendor's own names of models. */
const sumByModel = (rows: ReconcileInput['rows'], ours: ReadonlyMap<string, Ours>): Map<string, Side> => {
  const upstream = new Map<string, string>()
  for (const { model, aliases } of ours.values()) for (const alias of aliases) upstream.set(alias, model)
  for (const { model } of ours.values()) upstream.set(model, model)
  const theirs = new Map<string, Side>()
  for (const row of rows) {
    const model = upstream.get(row.model) ?? row.model
    const key = toKey({ day: row.day, model })
    theirs.set(key, { day: row.day, model, sums: add(theirs.get(key)?.sums, toSums(row)) })
  }
  return theirs
}

const toSums = (row: ReconcileInput['rows'][number]): Sums =>
  createFigures((name) => {
    const figure = row[name]
    if (figure === undefined) return null
    return name === 'cost' ? toMicro(figure) : BigInt(figure)
  })

const combine = (
  a: Sums | undefined,
  b: Sums | undefined,
  by: (a: bigint | null, b: bigint | null) => bigint | null,
): Sums => createFigures((name) => by(a ? a[name] : 0n, b ? b[name] : 0n))

/** A figure that some rows have and others lack is the sum of those that have it. */
const add = (a: Sums | undefined, b: Sums): Sums =>
  a ? combine(a, b, (one, other) => (one === null ? other : other === null ? one : one + other)) : b

const subtract = (a: Sums | undefined, b: Sums | undefined): Sums =>
  combine(a, b, (one, other) => (one === null || other === null ? null : one - other))

const toFigures = (sums: Sums): UsageFigures =>
  createFigures((name) => {
    const sum = sums[name]
    if (sum === null) return null
    return name === 'cost' ? toMoney(sum) : Number(sum)
  })

const toTotal = (ours: readonly Side[], theirs: readonly Side[]): Reconciliation['total'] => {
  const sum = (sides: readonly Side[]) =>
    sides.reduce<Sums | undefined>((all, side) => add(all, side.sums), undefined)
  const [mine, other] = [sum(ours), sum(theirs)]
  return {
    theirs: other ? toFigures(other) : null,
    ours: mine ? toFigures(mine) : null,
    difference: toFigures(subtract(other, mine)),
  }
}

/** The reports on the ledger for admins: sums, and a comparison with a vendor's export. */
export const createUsageReports = (database: Sql): UsageReports => ({
  report: createUsageReport(database),
  reconcile: createReconcile(database),
})
