import { fileURLToPath } from 'node:url'
import { openRuntime } from '../../src/app/open-runtime.ts'
import { startExecutor } from '../../src/features/payments/executor/start-executor.ts'
import { createNonce, orderPayment } from '../../src/features/payments/ledger/orders.ts'
import { newPaymentId } from '../../src/features/payments/ports/ids.ts'
import { hasRow, queryOne, type RunKey } from '../../src/infra/database/database.ts'
import { loginRoles } from '../../src/infra/database/login-roles.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { openQueues, wakeRun } from '../../src/infra/queue/queues.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'
import { createTestProvider } from '../../test/support/payment-provider.ts'
import { addBuyer, buyV1, buyV2, createExecutorServices } from '../../test/support/purchases.ts'
import { paymentUrlOf } from '../../test/support/served-logins.ts'
import type { Case, Variant } from '../case.ts'
import { query } from '../support/database.ts'
import type { Place } from '../support/place.ts'
import { latencies } from '../support/statistics.ts'

const payments = 1000
const tenant = 'buyer'

/** Orders of mandates of their own, then one executor, whose provider answers at once: from the first reservation to the last settlement. */
const payAll =
  (buy: typeof buyV1 | typeof buyV2): Variant =>
  async (place: Place) => {
    const owner = openPostgresDatabase({ url: place.databaseUrl })
    const roles = loginRoles.payments
    const database = openPostgresDatabase({ url: paymentUrlOf(place.databaseUrl), max: 20, roles })
    await addBuyer(owner, tenant)
    const total = place.count(payments)
    for (let index = 0; index < total; index++) {
      const { request } = await buy({ nonce: await createNonce(owner, tenant) })
      await orderPayment(owner, { tenant, run_id: 'run' }, { plan_seq: 1, index }, request)
    }
    const card = createTestProvider()
    const before = process.cpuUsage()
    const executor = startExecutor(createExecutorServices(database, database, card.provider))
    const read = async () =>
      (
        await query<{ done: number; ms: number }>(
          place,
          `SELECT count(*) FILTER (WHERE status = 'succeeded')::int AS done,
             extract(epoch FROM max(updated_at) - min(created_at))::float8 * 1000 AS ms FROM payments`,
        )
      )[0] ?? { done: 0, ms: Number.NaN }
    while ((await read()).done < total) await new Promise((resolve) => setTimeout(resolve, 100))
    const { user, system } = process.cpuUsage(before)
    await executor.stop()
    const { ms } = await read()
    await database.close()
    await owner.close()
    if (card.books.size !== total)
      throw new Error(`the provider has ${card.books.size} payments, not ${total}`)
    return {
      'payments per second': total / (ms / 1000),
      'CPU ms per payment': (user + system) / 1000 / total,
    }
  }

/** Runs that wait for a payment, one after the other: from the end of the wait to the next action of the run. */
const goOn: Variant = async (place: Place) => {
  const owner = openPostgresDatabase({ url: place.databaseUrl })
  const roles = loginRoles.payments
  const database = openPostgresDatabase({ url: paymentUrlOf(place.databaseUrl), roles })
  await addBuyer(owner, tenant)
  let paymentId = ''
  const toCalls = () => [{ name: 'await_payment', arguments: JSON.stringify({ payment_id: paymentId }) }]
  const toolFolders = [fileURLToPath(new URL('../support/tools', import.meta.url))]
  const runtime = await openRuntime(place.config, { models: noOpModels({ toCalls }), toolFolders })
  await runtime.startWorker()
  const queues = await openQueues({
    kind: 'redis',
    url: place.redisUrl,
    prefix: place.config.queuePrefix,
    log: silentLog,
  })
  const card = createTestProvider()
  const wake = (run: RunKey) => wakeRun(queues, run)
  const executor = startExecutor(createExecutorServices(database, database, card.provider, { wake }))
  const api = runtime.of(tenant)
  const once = async (): Promise<number> => {
    paymentId = newPaymentId()
    const { run } = await api.submit({ prompt: 'pay', user_id: 'u1' })
    const key = { tenant, run_id: run.id }
    const { request } = await buyV2({ nonce: await createNonce(owner, tenant) })
    const isParked = () =>
      hasRow(owner, "SELECT FROM runs WHERE run_id = $1 AND status = 'waiting'", [run.id])
    while (!(await isParked())) await new Promise((resolve) => setTimeout(resolve, 5))
    await orderPayment(owner, key, { plan_seq: 1, index: 0 }, request, { paymentId })
    await api.wait(run.id, AbortSignal.timeout(30_000))
    const row = await queryOne<{ ms: number }>(
      owner,
      `SELECT extract(epoch FROM min(a.created_at) - w.done_at)::float8 * 1000 AS ms
       FROM waits w JOIN actions a USING (run_id) WHERE w.run_id = $1 AND a.created_at > w.done_at GROUP BY w.done_at`,
      [run.id],
    )
    return row?.ms ?? Number.NaN
  }
  for (let n = 0; n < place.count(20); n++) await once()
  const ms: number[] = []
  for (let n = 0; n < place.count(200); n++) ms.push(await once())
  await executor.stop()
  await queues.close()
  await runtime.close()
  await Promise.all([database.close(), owner.close()])
  return latencies(ms)
}

const paymentsCase: Case = {
  about:
    'payments a second through one executor, verified from raw bytes, against a provider that answers at once; and how soon a run goes on whose payment has ended',
  ours: { 'AP2 0.1': payAll(buyV1), 'AP2 0.2': payAll(buyV2), 'a run goes on': goOn },
}

export default paymentsCase
