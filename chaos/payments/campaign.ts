import { setMaxListeners } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  createNonce,
  orderAnswer,
  orderForAdmin,
  orderPayment,
  storeWebhook,
} from '../../src/features/payments/ledger/orders.ts'
import { createTrustedKeys } from '../../src/features/payments/trust/trusted-keys.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { type CardProvider, cardSecrets, startCardProvider } from '../../test/support/card-provider.ts'
import { paymentUrlOf } from '../../test/support/served-logins.ts'
import { type Child, startChild } from '../child.ts'
import type { PostgresServer } from '../failures/postgres-server.ts'
import { seededPick, seededShare } from '../seeded-choice.ts'
import type { Findings } from '../suite.ts'
import type { ExecutorTask } from './executor-process.ts'
import { createRetry } from './retry.ts'
import { judgePayments, type LedgerRow } from './verdict.ts'
import { createWallet } from './wallet.ts'

const executorScript = fileURLToPath(new URL('./executor-process.ts', import.meta.url))
const tenant = 'chaos'
const audience = 'mason'
const lanes = 24
const perMandate = 10
/** Short, so that keys expire. A fifth of it is longer than a lease and than the provider is frozen, as with a window of a day. */
const windowMs = 20_000
const kinds = [
  ...['fail_before', 'fail_after', 'cut_before', 'cut_after', 'hang_before', 'hang_after'],
  ...['conflict', 'late', 'nonsense'],
]

export type PaymentCampaign = {
  databaseUrl: string
  /** A server of its own, which is crashed too; null: it stays. */
  postgres: PostgresServer | null
  payments: number
  /** The share of payments for which the provider never answers, which an operator settles. */
  stuck: number
  /** Seconds between two faults of processes; null: none. */
  faultEveryS: number | null
  seed: number
  say(line: string): void
  signal: AbortSignal
}

type Executor = Child<{ event: 'ready' }>

/** Makes many payments through real executors and a real provider that answers in every ambiguous way, and compares the books. */
export const payMany = async (campaign: PaymentCampaign): Promise<Findings> => {
  const { databaseUrl, payments, stuck, seed, say, signal } = campaign
  setMaxListeners(0, signal)
  const database = openPostgresDatabase({ url: databaseUrl, max: 8 })
  const roles = { plain: 'mason_payments', business: 'mason_payments' }
  const paymentUrl = paymentUrlOf(databaseUrl)
  const witness = openPostgresDatabase({ url: paymentUrl, max: 4, roles })
  const inbox = await openInbox(database)
  const provider = await startCardProvider({
    random: { seed: String(seed), share: 0.25, kinds, stuck },
    ...{ window_ms: windowMs, late_ms: 300 },
    webhooks: { url: inbox.url, delays_ms: [0, 900, 40, 2500, 0, 200], copies: 2 },
  })
  const task: ExecutorTask = {
    ...{ databaseUrl: paymentUrl, audience, secrets: cardSecrets },
    settings: provider.toSettings({ window_ms: windowMs, timeout_ms: 700 }),
  }
  const executors: Executor[] = [startChild(executorScript, task), startChild(executorScript, task)]
  const [faults, drained] = [new AbortController(), new AbortController()]
  try {
    await Promise.all(executors.map((one) => one.next('ready')))
    const wallet = createWallet(audience, perMandate)
    await prepare(database, wallet)
    const startedMs = performance.now()
    const shaking = shake(campaign, { executors, task, provider }, AbortSignal.any([faults.signal, signal]))
    const answering = answerChallenges(database, witness, drained.signal)
    await orderAll(database, wallet, payments, seed, signal)
    say(`${payments} payments are ordered`)
    // the last ones wait for minutes between their tries: no fault is left for them
    await drain(witness, campaign, () => faults.abort(), signal)
    const seconds = (performance.now() - startedMs) / 1000
    faults.abort()
    drained.abort()
    const [made] = await Promise.all([shaking, answering])
    const unknown = await settleUnknown(database, witness, provider, signal)
    const { figures, failures } = await judge(witness, provider, payments)
    return {
      figures: {
        ...{ payments, 'payments a second': Math.round(payments / seconds) },
        ...{ faults: made, 'unknown, settled by an operator': unknown, ...figures },
      },
      failures: failures.slice(0, 20),
    }
  } finally {
    faults.abort()
    drained.abort()
    for (const one of executors) one.signal('SIGKILL')
    await Promise.all([...executors.map((one) => one.ended), provider.close(), inbox.close()])
    await Promise.all([database.close(), witness.close()])
  }
}

/** What the API does with webhooks: stores them as they come. */
const openInbox = async (database: Database) => {
  const server = createServer(async (request, response) => {
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    )
    const stored = await storeWebhook(database, 'card', headers, await buffer(request)).then(
      () => true,
      () => false,
    )
    response.writeHead(stored ? 204 : 503).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Wallet = ReturnType<typeof createWallet>

const prepare = async (database: Database, wallet: Wallet): Promise<void> => {
  await database.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT DO NOTHING', [tenant])
  for (const { issuer, role, jwk } of wallet.trusted)
    await createTrustedKeys(database).create({}, {
      ...{ business_id: tenant, issuer, kid: String(jwk.kid), roles: [role] },
      jwk: { kty: 'EC', crv: 'P-256', x: String(jwk.x), y: String(jwk.y) },
    } as never)
}

/** Postgres may be down. */
const retry = createRetry(/connect|terminat|recovery|starting up|shutting down|unavailable|reach/i)
const runOf = (nth: number) => ({ tenant, run_id: `run_${nth}` })
const call = { plan_seq: 1, index: 0 }

const pickCredential = (seed: number, nth: number): string => {
  const share = seededShare(seed, 'card', nth)
  if (share < 0.04) return 'tok_declined'
  if (share < 0.08) return 'tok_challenge'
  return share < 0.12 ? 'tok_pending' : 'tok_visa'
}

const orderAll = async (
  database: Database,
  wallet: Wallet,
  payments: number,
  seed: number,
  signal: AbortSignal,
): Promise<void> => {
  let next = 0
  const lane = async (): Promise<void> => {
    for (let nth = next++; nth < payments; nth = next++) {
      const amount = 100 + Math.floor(seededShare(seed, 'amount', nth) * 90_000)
      const nonce = await retry(() => createNonce(database, tenant), signal)
      const mandates = await wallet.sign(nth, amount, nonce)
      const request = { ...mandates, provider_id: 'card', nonce }
      await retry(
        () => orderPayment(database, runOf(nth), call, request, { credential: pickCredential(seed, nth) }),
        signal,
      )
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

/** The person who gets the code of their bank. */
const answerChallenges = async (
  database: Database,
  witness: Database,
  signal: AbortSignal,
): Promise<void> => {
  while (!signal.aborted) {
    const asked = await witness
      .query<{ payment_id: string; run_id: string }>(
        `SELECT payment_id, run_id FROM payments p WHERE challenge IS NOT NULL AND status = 'sent'
           AND NOT EXISTS (SELECT FROM payment_orders o WHERE o.payment_id = p.payment_id AND o.kind = 'answer' AND done_at IS NULL)`,
      )
      .catch(() => ({ rows: [] }))
    for (const { payment_id, run_id } of asked.rows)
      await orderAnswer(
        database,
        { tenant, run_id },
        { plan_seq: Date.now() % 1e9, index: 0 },
        payment_id,
        '123456',
      ).catch(() => {})
    await pause(250, undefined, { signal }).catch(() => {})
  }
}

type Victims = { executors: Executor[]; task: ExecutorTask; provider: CardProvider }

/** Kills and freezes one process after another until the signal; returns how often. */
const shake = async (
  { faultEveryS, postgres, seed, say }: PaymentCampaign,
  { executors, task, provider }: Victims,
  signal: AbortSignal,
): Promise<number> => {
  if (faultEveryS === null) return 0
  const wait = (ms: number) => pause(ms, undefined, { signal }).catch(() => {})
  const acts = {
    async 'kill executor'(at: number) {
      executors[at]?.signal('SIGKILL')
      await executors[at]?.ended
      executors[at] = startChild(executorScript, task)
    },
    'kill provider': () => provider.restart(),
    async 'freeze provider'() {
      provider.signal('SIGSTOP')
      await wait(2500)
      provider.signal('SIGCONT')
    },
    async 'freeze executor'(at: number) {
      executors[at]?.signal('SIGSTOP')
      await wait(6000)
      executors[at]?.signal('SIGCONT')
    },
    ...(postgres && {
      async 'crash postgres'() {
        await postgres.crash()
        await wait(500)
        await postgres.start()
      },
    }),
  }
  const names = Object.keys(acts) as (keyof typeof acts)[]
  let count = 0
  while (!signal.aborted) {
    await wait(faultEveryS * 1000)
    if (signal.aborted) break
    const name = names[count % names.length] ?? 'kill provider'
    await acts[name]?.(seededPick([0, 1], seed, 'executor', count))
    count += 1
    if (count % 10 === 0) say(`${count} faults, the last: ${name}`)
  }
  return count
}

type Counts = { done: number; unknown: number }

/** Until every payment has an end, or is unknown and stays so. */
const drain = async (
  witness: Database,
  { payments, say }: PaymentCampaign,
  onNearlyAll: () => void,
  signal: AbortSignal,
): Promise<void> => {
  let last: Counts = { done: -1, unknown: 0 }
  let [quietSince, saidAt] = [performance.now(), performance.now()]
  for (;;) {
    const { rows } = await retry(
      () =>
        witness.query<Counts>(
          `SELECT count(*) FILTER (WHERE status IN ('succeeded', 'declined', 'released'))::int AS done,
             count(*) FILTER (WHERE status = 'unknown')::int AS unknown FROM payments`,
        ),
      signal,
    )
    const counts = rows[0] ?? last
    const now = performance.now()
    if (counts.done === payments) return
    if (counts.done + counts.unknown >= 0.97 * payments) onNearlyAll()
    if (counts.done !== last.done) [last, quietSince] = [counts, now]
    if (counts.done + counts.unknown === payments && now - quietSince > 10_000) return
    if (now - quietSince > 120_000) return
    if (now - saidAt > 15_000) {
      saidAt = now
      say(`${counts.done} of ${payments} are settled, ${counts.unknown} unknown`)
    }
    await pause(100, undefined, { signal })
  }
}

/** The operator looks into the books of the provider, and settles. */
const settleUnknown = async (
  database: Database,
  witness: Database,
  provider: CardProvider,
  signal: AbortSignal,
): Promise<number> => {
  const { rows } = await witness.query<{ payment_id: string }>(
    "SELECT payment_id FROM payments WHERE status = 'unknown'",
  )
  const books = await provider.listPayments()
  for (const { payment_id } of rows) {
    const isPaid = books.some((one) => one.payment_id === payment_id && one.captured > 0)
    const status = isPaid ? 'succeeded' : 'declined'
    await orderForAdmin(database, tenant, payment_id, { kind: 'settle', status, note: 'by the books' })
  }
  const open = "SELECT count(*)::int AS n FROM payment_orders WHERE kind = 'settle' AND done_at IS NULL"
  while ((await witness.query<{ n: number }>(open)).rows[0]?.n) await pause(50, undefined, { signal })
  return rows.length
}

const judge = async (witness: Database, provider: CardProvider, payments: number): Promise<Findings> => {
  const { rows } = await witness.query<LedgerRow>(
    `SELECT o.payment_id, p.status, p.amount_minor FROM payment_orders o LEFT JOIN payments p USING (payment_id)
     WHERE o.kind = 'pay'`,
  )
  const { rows: sums } = await witness.query<{ reserved: number; spent: number }>(
    'SELECT sum(reserved_minor)::bigint AS reserved, sum(spent_minor)::bigint AS spent FROM mandate_spend',
  )
  const { figures, failures } = judgePayments(
    rows,
    sums[0] ?? { reserved: 0, spent: 0 },
    await provider.listPayments(),
  )
  const missing = payments - rows.length
  const statuses = Object.fromEntries(
    ['succeeded', 'declined', 'released'].map((status) => [
      status,
      rows.filter((row) => row.status === status).length,
    ]),
  )
  return {
    figures: { ...statuses, ...figures },
    failures: missing === 0 ? failures : [`${missing} orders are missing`, ...failures],
  }
}
