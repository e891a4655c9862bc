import { databaseRef } from '../../src/features/core.ref.ts'
import { createUsageReport } from '../../src/features/usage/usage-report.ts'
import { openDeadline } from '../../src/state/deadline.ts'
import { startFakeModel } from '../../test/support/fake-model/fake-model.ts'
import { serversMissing } from '../../test/support/processes.ts'
import { until } from '../../test/support/runs.ts'
import { quantile } from '../fleet/quantile.ts'
import type { Findings, SuiteOptions } from '../suite.ts'
import { type BillingRecord, businesses, createBillingRecord, firstRun, promptOf } from './billing-record.ts'
import { callVendors } from './calls.ts'
import { findSecrets } from './canary.ts'
import { compareBilling } from './compare-billing.ts'
import { driveLimit, healVendor } from './limits.ts'
import { addVendor, openStage, type Stage } from './stage.ts'

/** Requests that the vendors never got, of all: a connection that a vendor closes may be in use again by then. */
const mayBeUnseen = 0.01

/** Two vendors with 24 failures, one for each protocol: every call ends, every token is booked once, no secret shows. */
export const meetVendors = async (calls: number, options: SuiteOptions): Promise<Findings> => {
  if (serversMissing !== null) throw new Error(serversMissing)
  const { seed, scale, say, signal } = options
  const book = createBillingRecord(seed)
  await using north = await startFakeModel({ script: book.responderFor('openai') })
  await using south = await startFakeModel({ script: book.responderFor('http') })
  await using stage = await openStage()
  const shared = { keys: businesses, granted: true }
  const vendors = [
    await addVendor(stage, { name: 'north', baseUrl: north.baseUrl, ...shared }),
    await addVendor(stage, { name: 'south', baseUrl: south.baseUrl, format: 'deepseek-chat', ...shared }),
  ]
  const models = vendors.map(({ model }) => ({ model }))
  const route = { role: 'planner', models, strategy: 'weighted' as const }
  await stage.runtimes[0].admin.registry.routes.create({}, route)

  const called = await callVendors(stage, book, calls, options)
  const runIds = await runGraph(stage, signal)
  await booked(stage, book)
  const compared = await compareBilling(stage, book, vendors, runIds)
  const failures = [...called.failures, ...compared.failures, ...(await checkReport(stage))]
  if (compared.unseen > Math.max(2, compared.requests * mayBeUnseen))
    failures.push(`${compared.unseen} requests are in the ledger that no vendor got`)
  say('the books are compared')
  const healed = await healVendor(stage)
  // the second minute has no slice
  const limited = await driveLimit(stage, scale >= 1, signal)
  const searched = await findSecrets(stage)
  failures.push(...healed.failures, ...limited.failures, ...searched.failures)
  return {
    figures: {
      calls,
      ...Object.fromEntries([...called.ends].sort().map(([name, count]) => [`calls ${name}`, count])),
      'longest call, ms (p50, p99, most)': [0.5, 0.99, 1]
        .map((share) => Math.round(quantile(called.times, share)))
        .join(', '),
      'requests to the vendors': compared.requests,
      'of them that failed': book.all().filter(({ failure }) => failure !== null).length,
      'kinds of failures': new Set(book.all().flatMap(({ failure }) => failure?.name ?? [])).size,
      'requests by protocol (openai, http)': [north, south].map((one) => one.requests().length).join(', '),
      'requests that no vendor got': compared.unseen,
      'tokens the vendors billed': compared.tokens,
      'tokens in the ledger': compared.ledgerTokens,
      'requests with estimated tokens': compared.estimated,
      'runs of the graph': runIds.size,
      'probes of a refused key': healed.probes,
      'key back after its vendor healed, ms': healed.backMs,
      'most requests in any minute at rpm 60 over two processes': limited.most,
      'secrets looked for': stage.secrets.length,
      ...Object.fromEntries(
        Object.entries(searched.characters).map(([place, count]) => [`characters searched, ${place}`, count]),
      ),
    },
    failures: shortened(failures),
  }
}

/** One failure tends to show many times. */
const shortened = (failures: string[]): string[] =>
  failures.length <= 30 ? failures : [...failures.slice(0, 30), `and ${failures.length - 30} more`]

/** A few runs through queue and worker, so that secrets have had their chance to get into Redis. */
const runGraph = async ({ runtimes, show }: Stage, signal: AbortSignal): Promise<Map<number, string>> => {
  const [runtime] = runtimes
  await runtime.startWorker({ concurrency: 2 })
  const runIds = new Map<number, string>()
  for (const [at, business] of businesses.entries()) {
    const call = firstRun + at
    const api = runtime.of(business)
    const { run } = await api.submit({ prompt: promptOf(call, business), user_id: 'u1' })
    runIds.set(call, run.id)
    using patience = openDeadline(60_000, signal)
    const view = await api.wait(run.id, patience.signal)
    show(view)
    if (view.status !== 'completed') throw new Error(`a run for ${business} ended as ${view.status}`)
  }
  return runIds
}

/** Waits until the ledger has every request, and none is under way. */
const booked = async ({ sql }: Stage, book: BillingRecord): Promise<void> => {
  const count = async (table: string): Promise<number> =>
    Number((await sql.query<{ count: string }>(`SELECT count(*) FROM mason.${table}`)).rows[0]?.count)
  await until(
    'all requests are in the ledger',
    async () =>
      (await count('usage_reservations')) === 0 && (await count('usage_ledger')) >= book.all().length,
    90_000,
  )
}

/** What admins read of each business has to be the sum of its rows. */
const checkReport = async ({ sql, runtimes }: Stage): Promise<string[]> => {
  const { rows } = await sql.query<{ tenant: string; tokens: string }>(
    'SELECT tenant, sum(total_tokens) AS tokens FROM mason.usage_ledger GROUP BY tenant',
  )
  const report = await createUsageReport(runtimes[0].features.get(databaseRef))({
    group_by: 'business',
    limit: 100,
  })
  return rows.flatMap(({ tenant, tokens }) => {
    const shown = report.data.find(({ business_id }) => business_id === tenant)?.total_tokens
    return shown === Number(tokens) ? [] : [`${tenant} used ${tokens} tokens, the report says ${shown}`]
  })
}
