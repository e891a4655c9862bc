import type { Usage } from '../../src/state/runtime-state.ts'
import { type BilledRequest, type BillingRecord, firstRun, readReportedUsage } from './billing-record.ts'
import { runIdOf } from './calls.ts'
import type { Stage, VendorSetup } from './stage.ts'

type Row = {
  run_id: string
  tenant: string
  key_id: string
  model_name: string
  status: string
  error_code: string | null
  prompt: number
  completion: number
  total: number
  estimated: boolean
}

/** A request as both books have it, in one line. */
const lineOf = (business: string, key: string, model: string, usage: Usage): string =>
  `${business} ${key} ${model} ${usage.prompt_tokens}+${usage.completion_tokens}=${usage.total_tokens}`

const lineOfRow = ({ tenant, key_id, model_name, prompt, completion, total }: Row): string =>
  lineOf(tenant, key_id, model_name, {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
  })

const saysUsage = ({ estimated, total }: Row): boolean => !estimated && total > 0

export type BillingComparison = {
  requests: number
  tokens: number
  ledgerTokens: number
  estimated: number
  /** Requests that are in the ledger as failed, and that no vendor ever got. */
  unseen: number
  failures: string[]
}

/** The ledger beside what the vendors billed: per request, to the token; and no key was used for another business. */
export const compareBilling = async (
  { sql }: Stage,
  billing: BillingRecord,
  vendors: readonly VendorSetup[],
  runIds: ReadonlyMap<number, string>,
): Promise<BillingComparison> => {
  const { rows } = await sql.query<Row>(
    `SELECT run_id, tenant, key_id, model_name, status, error_code, prompt_tokens::float8 AS prompt,
       completion_tokens::float8 AS completion, total_tokens::float8 AS total, estimated
     FROM mason.usage_ledger WHERE vendor_id = ANY ($1) ORDER BY usage_id`,
    [vendors.map(({ id }) => id)],
  )
  const byRun = new Map<string, Row[]>()
  for (const row of rows) byRun.set(row.run_id, [...(byRun.get(row.run_id) ?? []), row])
  const keys = new Map(
    vendors.flatMap((vendor) => vendor.keys.map((key) => [key.secret, { ...key, vendor }])),
  )
  const failures: string[] = []
  let unseen = 0

  const keyOf = ({ call, secret, business, upstream }: BilledRequest) => {
    const key = keys.get(secret)
    if (key?.label !== business)
      failures.push(`call ${call} of ${business} came with the key of ${key?.label}`)
    if (upstream !== `${key?.vendor.model}-up`) failures.push(`call ${call} asked its vendor for ${upstream}`)
    return key
  }
  const compareCall = (call: number, billed: readonly BilledRequest[], entered: readonly Row[]): void => {
    const reported = billed.flatMap((one) => {
      const key = keyOf(one)
      const usage = readReportedUsage(one)
      return usage === null ? [] : [lineOf(one.business, key?.id ?? '', key?.vendor.model ?? '', usage)]
    })
    const counted = entered.filter(saysUsage).map(lineOfRow)
    if (reported.toSorted().join() !== counted.toSorted().join()) {
      const how = billed.map(({ failure }) => failure?.name ?? 'good').join(', ')
      const ends = entered.map(({ status, error_code }) => error_code ?? status).join(', ')
      failures.push(
        `call ${call}: the vendors reported [${reported.join('; ')}], the ledger says [${counted.join('; ')}] (${how} | ${ends})`,
      )
    }
    const more = entered.length - billed.length
    const lost = entered.filter(
      (row) => !saysUsage(row) && /^model_(unavailable|timeout)$/.test(row.error_code ?? ''),
    ).length
    if (more < 0 || more > lost)
      failures.push(
        `call ${call}: the vendors got ${billed.length} requests, the ledger has ${entered.length}`,
      )
    unseen += Math.max(0, more)
  }

  const known = new Set<string>()
  for (const [call, billed] of billing.byCall) {
    const runId = call >= firstRun ? (runIds.get(call) ?? '') : runIdOf(call)
    known.add(runId)
    compareCall(call, billed, byRun.get(runId) ?? [])
  }
  for (const [runId, entered] of byRun)
    if (!known.has(runId) && entered.some(saysUsage)) failures.push(`${runId} is in the ledger alone`)
  return {
    requests: billing.all().length,
    tokens: billing.all().reduce((sum, one) => sum + (readReportedUsage(one)?.total_tokens ?? 0), 0),
    ledgerTokens: rows.filter(saysUsage).reduce((sum, { total }) => sum + total, 0),
    estimated: rows.filter(({ estimated }) => estimated).length,
    unseen,
    failures,
  }
}
