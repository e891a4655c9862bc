import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type AgentName, type Agents, agentNames, startAgents } from '../../examples/buy-demo/agents.ts'
import { introduceAgents } from '../../examples/buy-demo/introductions.ts'
import { startShopper } from '../../examples/buy-demo/shopper.ts'
import { buyUnattended } from '../../examples/buy-demo/unattended.ts'
import { createKey, publicUrl, setUpTrust, signContent } from '../../examples/purchase/stage.ts'
import { startMason } from '../../examples/served-demo/processes.ts'
import { createClient } from '../../src/client/index.ts'
import { parseChain } from '../../src/features/payments/mandates/tokens/chain.ts'
import { hashText } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { loginRoles } from '../../src/infra/database/login-roles.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { shopperSettings, startPayments } from '../../test/support/purchase-processes.ts'
import { scriptFlags } from '../../test/support/script-flags.ts'
import { paymentUrlOf } from '../../test/support/served-logins.ts'
import { seededPick } from '../seeded-choice.ts'
import type { Findings } from '../suite.ts'
import { type Books, isLost, judgePurchases, type PaidRow } from './verdict.ts'

export type PurchaseCampaign = {
  databaseUrl: string
  redisUrl: string
  ap2: '0.1' | '0.2'
  purchases: number
  /** Purchases side by side. */
  lanes: number
  seed: number
  say(line: string): void
  signal: AbortSignal
}

const victims = ['worker', 'executor', ...agentNames] as const
/** After each of these, what comes next is cut off. */
const steps = [
  ...['create_intent_mandate', 'find_products', 'choose_cart', 'get_shipping_address', 'update_cart'],
  ...['get_payment_methods', 'get_payment_credential_token', 'create_payment_mandate', 'consent_required'],
  ...['request_user_authorization', 'send_payment_mandate', 'input_required'],
  ...['answer_challenge', 'check_receipt'],
]
const quietMs = 120_000

/** Starts the processes of Mason that are killed; each starts again at once. */
const startProcesses = async ({ databaseUrl, redisUrl }: PurchaseCampaign, modelUrl: string) => {
  const { PATH = '', HOME = '' } = process.env
  const shared = { PATH, HOME, REDIS_URL: redisUrl, MASON_PUBLIC_URL: publicUrl, LOG_LEVEL: 'fatal' }
  const [masterKey = '', paymentKey = ''] = [1, 2].map(() => randomBytes(32).toString('base64'))
  const env = {
    ...{ ...shared, ...shopperSettings(modelUrl), DATABASE_URL: databaseUrl },
    ...{ MASON_AUTH: 'off', MASON_LEASE_MS: '3000', MASON_MASTER_KEY: masterKey },
  }
  const start = {
    executor: () => startPayments(databaseUrl, paymentKey, shared),
    worker: () => startMason(['worker'], env, /takes \d+ runs/),
  }
  const running = { executor: [await start.executor()], worker: [await start.worker(), await start.worker()] }
  const api = await startMason(['serve', '--role', 'api', '--port', '0'], env, /listens on (http\S+)/)
  return {
    url: api.said[1] ?? '',
    async restart(name: keyof typeof running, at: number) {
      const all = running[name]
      const nth = at % all.length
      await all[nth]?.stop('SIGKILL')
      all[nth] = await start[name]()
    },
    close: () => Promise.all([api, ...running.executor, ...running.worker].map((one) => one.stop())),
  }
}

/** Buys again and again, kills one of five at each step in turn, and compares the books of all. */
export const buyMany = async (campaign: PurchaseCampaign): Promise<Findings> => {
  const { ap2, purchases, lanes, seed, say, signal } = campaign
  const folder = await mkdtemp(join(tmpdir(), 'mason-chaos-purchases-'))
  const [phone, model] = [createKey('phone-1'), await startShopper()]
  const mason = await startProcesses(campaign, model.url)
  const set = await setUpTrust(mason.url, 'none', phone)
  const stock = { 'ESP-PRO': purchases }
  const agents = await startAgents({
    ...{ folder, audience: publicUrl, trust: set.keys, flags: scriptFlags() },
    change: { merchant: { unsigned_offers: ap2 === '0.1', stock } },
  })
  const ended = new AbortController()
  let kills = Promise.resolve()
  const count = { kills: 0, bought: 0 }
  const failures: string[] = []
  const kill = async (victim: (typeof victims)[number], nth: number): Promise<void> => {
    if (victim === 'worker' || victim === 'executor') await mason.restart(victim, nth)
    else await agents[victim].restart()
    count.kills++
  }
  const operate = operateEffects(set.call, ended.signal)
  try {
    await introduceAgents(set, agents)
    const client = createClient({ url: mason.url, token: 'none' })
    let next = 0
    const buy = async (nth: number): Promise<void> => {
      const step = steps[nth % steps.length]
      const victim = seededPick(victims, seed, 'victim', nth)
      let isCut = false
      const { status, answer } = await buyUnattended(
        {
          ...{ client, call: set.call, sign: (content) => signContent(content, phone) },
          onEvent({ event, data }) {
            if (isCut || (event === 'action' ? data.node : event) !== step) return
            isCut = true
            kills = kills
              .then(() => kill(victim, nth))
              .catch((error: Error) => void failures.push(`${victim} did not start again: ${error.message}`))
          },
        },
        `user_${ap2}_${nth}`,
        AbortSignal.any([signal, AbortSignal.timeout(quietMs * 3)]),
      )
      if (status !== 'completed') failures.push(`purchase ${nth} is ${status} after ${step} and ${victim}`)
      if (answer?.startsWith('I bought it')) count.bought++
      else say(`purchase ${nth}, ${victim} killed after ${step}: ${answer?.slice(0, 200)}`)
    }
    const lane = async (): Promise<void> => {
      for (let nth = next++; nth < purchases; nth = next++)
        await buy(nth).catch((error: Error) => failures.push(`purchase ${nth}: ${error.message}`))
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    await kills
    const { rows, books, settled } = await settleBooks(campaign, agents, set.call)
    const judged = judgePurchases(rows, books, count.bought)
    ended.abort()
    return {
      figures: {
        ...{ purchases, kills: count.kills, bought: count.bought, 'settled by an operator': settled },
        ...{ 'effects that an operator resolved': await operate, ...judged.figures },
      },
      failures: [...failures, ...judged.failures].slice(0, 20),
    }
  } finally {
    ended.abort()
    await kills
    await Promise.all([agents.close(), mason.close()])
    model.close()
    await rm(folder, { recursive: true, force: true })
  }
}

type Call = Awaited<ReturnType<typeof setUpTrust>>['call']

/** The operator: agents find a message again by its id, so what is unknown is sent again. Resolves with how often. */
const operateEffects = async (call: Call, signal: AbortSignal): Promise<number> => {
  let resolved = 0
  while (!signal.aborted) {
    const { data } = await call<{ data: { id: string }[] }>('GET', '/admin/v1/effects?status=unknown').catch(
      () => ({ data: [] }),
    )
    for (const { id } of data)
      resolved += await call('POST', `/admin/v1/effects/${id}/resolve`, { took_place: false }).then(
        () => 1,
        () => 0,
      )
    await pause(500, undefined, { signal }).catch(() => {})
  }
  return resolved
}

/** The mandate of a payment as the processor names it. */
const toMandateId = (raw: string): string =>
  raw.startsWith('{')
    ? JSON.parse(raw).payment_mandate_contents.payment_mandate_id
    : hashText(parseChain(raw).at(-1)?.jws.signingInput ?? '')

const statement = `
  SELECT o.payment_id, p.status, p.amount_minor::float8 AS amount, m.raw FROM payment_orders o
  LEFT JOIN payments p USING (payment_id) LEFT JOIN mandates m ON m.payment_id = o.payment_id AND m.kind = 'payment'
  WHERE o.kind = 'pay'`

const readAll = (agents: Agents): Books => {
  const list = (agent: AgentName, table: string) => agents[agent].list<never>(table)
  return {
    payments: list('processor', 'payments'),
    orders: list('merchant', 'orders'),
    receipts: list('wallet', 'receipts'),
    tokens: list('wallet', 'tokens'),
  }
}

/** Waits until nothing changes any more; the operator settles what is unknown by the books of the processor. */
const settleBooks = async ({ databaseUrl, signal }: PurchaseCampaign, agents: Agents, call: Call) => {
  await using witness = openWitness(paymentUrlOf(databaseUrl))
  const settled = new Set<string>()
  for (const since = performance.now(); ; await pause(500, undefined, { signal })) {
    const found = await witness.database.query<Omit<PaidRow, 'mandate'> & { raw: string | null }>(statement)
    const rows = found.rows.map(({ raw, ...row }): PaidRow => ({ ...row, mandate: raw && toMandateId(raw) }))
    const books = readAll(agents)
    for (const { payment_id, mandate, status } of rows) {
      if (status !== 'unknown' || settled.has(payment_id)) continue
      settled.add(payment_id)
      const isPaid = books.payments.some((one) => one.mandate === mandate && one.state === 'paid')
      const body = { status: isPaid ? 'succeeded' : 'declined', note: 'by the books of the processor' }
      await call('POST', `/admin/v1/payments/${payment_id}/settle`, body)
    }
    const isPaying = books.orders.some(({ state }) => state === 'paying')
    if ((!rows.some(isLost) && !isPaying) || performance.now() - since > quietMs)
      return { rows, books, settled: settled.size }
  }
}

const openWitness = (url: string) => {
  const roles = loginRoles.payments
  const database = openPostgresDatabase({ url, max: 2, roles })
  return { database, [Symbol.asyncDispose]: () => database.close() }
}
