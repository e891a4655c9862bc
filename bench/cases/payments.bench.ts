import { loginRoles } from '../../src/infra/database/login-roles.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { startExecutor } from '../../src/payments/executor/start-executor.ts'
import { createNonce, orderPayment } from '../../src/payments/ledger/orders.ts'
import { createTestProvider } from '../../test/support/payment-provider.ts'
import { addBuyer, buyV1, buyV2, createExecutorServices } from '../../test/support/purchases.ts'
import { paymentUrlOf } from '../../test/support/served-logins.ts'
import type { Case, Variant } from '../case.ts'
import { query } from '../support/database.ts'
import type { Place } from '../support/place.ts'

const payments = 1000
const tenant = 'buyer'

/** Orders of mandates of their own, then one executor, whose provider answers at once: from the first reservation to the last settlement. */
const payAll =
  (buy: typeof buyV1 | typeof buyV2): Variant =>
  async (place: Place) => {
    const owner = openPostgresDatabase({ url: place.databaseUrl })
    const roles = loginRoles.MASON_PAYMENT_DATABASE_URL
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

const paymentsCase: Case = {
  about:
    'payments a second through one executor, verified from raw bytes, against a provider that answers at once',
  ours: { 'AP2 0.1': payAll(buyV1), 'AP2 0.2': payAll(buyV2) },
}

export default paymentsCase
