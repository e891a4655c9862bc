// backends: either

import { expect, onTestFinished } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import {
  claimDeliveries,
  deliveryLimits,
  settleDelivery,
} from '../../../src/features/webhooks/delivery-queue.ts'
import { createWebhookSender } from '../../../src/features/webhooks/webhook-sender.ts'
import webhookRetention from '../../../src/features/webhooks/webhooks.retention.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { openEgress } from '../../../src/infra/egress/egress.ts'
import { repeatWork } from '../../../src/infra/lib/repeat-work.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { baseConfig, unique } from '../../support/backend.ts'
import { test as base, closing } from '../../support/integration-test.ts'
import { count, until } from '../../support/runs.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'

/** A product's server of which one path answers, and the others are of no use. */
const answers = (path: string) => {
  if (path === '/redirect') return { status: 302, headers: { location: '/fine' } }
  if (path === '/silent') return false
  return path === '/500' ? 500 : 204
}
const test = base
  .extend(
    'slow',
    { scope: 'file' },
    closing(() => startWebhookReceiver(({ path }) => answers(path))),
  )
  .extend(
    'fine',
    { scope: 'file' },
    closing(() => startWebhookReceiver()),
  )

test.afterEach(async ({ database }) => {
  await database.query('DELETE FROM webhook_deliveries')
})

const startSender = (database: Database, timeoutMs: number) => {
  const egress = openEgress()
  const sender = createWebhookSender({
    database,
    egress,
    masterKeys: createMasterKeys(baseConfig.masterKey),
    scrubber: { add() {} },
    renderPush: null,
    log: silentLog,
    timeoutMs,
  })
  const loop = repeatWork(sender.sendDue, 500, systemClock, silentLog, 'sending webhooks')
  onTestFinished(async () => {
    await sender.drain(loop.stop())
    await egress[Symbol.asyncDispose]()
  })
  return sender
}

/** A business whose addresses may be on loopback. */
const addBusiness = async (database: Database, allowPrivate = true): Promise<string> => {
  const business = unique('sends')
  await ensureBusiness(database, business)
  await database.query('INSERT INTO webhook_settings (tenant, allow_private) VALUES ($1, $2)', [
    business,
    allowPrivate,
  ])
  return business
}

const queue = async (database: Database, business: string, url: string, times = 1): Promise<void> => {
  await database.query(
    `INSERT INTO webhook_deliveries (tenant, type, url, host)
     SELECT $1, 'webhook.ping', $2, substring($2 FROM '^[^/?#]+//[^/?#]+') FROM generate_series(1, $3::int)`,
    [business, url, times],
  )
}

const rowOf = (database: Database, business: string) =>
  queryOne<{ status: string; attempts: number; last_error: string; wait_s: number }>(
    database,
    `SELECT status, attempts, last_error, extract(epoch FROM due_at - last_attempt_at)::int AS wait_s
     FROM webhook_deliveries WHERE tenant = $1`,
    [business],
  )

test('an address that redirects, answers 500, answers never or is refused has a row with the reason', async ({
  database,
  slow,
}) => {
  startSender(database, 2500)
  const cases = [
    ['/redirect', true, 'pending', 'the address answered 302; redirects are not followed'],
    ['/500', true, 'pending', 'the address answered 500'],
    ['/silent', true, 'pending', 'no answer within 2.5 s'],
    ['/fine', false, 'dead', 'allow_private is not set'],
  ] as const
  await Promise.all(
    cases.map(async ([path, allowPrivate, status, error]) => {
      const business = await addBusiness(database, allowPrivate)
      await queue(database, business, slow.url + path)
      const row = await until(`${path} was tried`, async () => {
        const row = await rowOf(database, business)
        return row?.last_error ? row : null
      })
      expect(row).toMatchObject({ status, attempts: 1, last_error: expect.stringContaining(error) })
      if (status === 'pending') expect(row.wait_s).toBeGreaterThan(3)
    }),
  )
  expect(slow.of('/fine')).toEqual([])
})

test('a thousand webhooks to a silent address delay neither another business nor another address', async ({
  database,
  slow,
  fine,
}) => {
  const [hostile, other] = [await addBusiness(database), await addBusiness(database)]
  await queue(database, hostile, `${slow.url}/silent`, 1000)
  startSender(database, 25_000)
  const before = slow.of('/silent').length
  const inFlight = () => slow.of('/silent').length - before
  await until('the silent address is full', () => inFlight() >= deliveryLimits.host)
  await queue(database, other, `${fine.url}/other`, 40)
  await queue(database, hostile, `${fine.url}/same`, 20)
  await until('all others are delivered', () => fine.received.length === 60)
  // none waited for the silent ones: of these no more were tried meanwhile than may be in flight
  expect(inFlight()).toBe(deliveryLimits.host)
})

test('what a worker records late counts for nothing once another has the webhook', async ({ database }) => {
  const business = await addBusiness(database)
  await queue(database, business, 'http://127.0.0.1:9/')
  const [first] = await claimDeliveries(database, 1)
  expect(await claimDeliveries(database, 1)).toEqual([])
  await database.query('UPDATE webhook_deliveries SET due_at = clock_timestamp() WHERE tenant = $1', [
    business,
  ])
  const [second] = await claimDeliveries(database, 1)
  expect([first?.webhook_id, first?.attempts]).toEqual([second?.webhook_id, 1])
  expect(second?.attempts).toBe(2)
  const settle = (claim: typeof first) =>
    claim && settleDelivery(database, claim, { kind: 'delivered', status: 200 })
  expect(await settle(first)).toBeNull()
  expect(await settle(second)).toBe('delivered')
  expect(
    await count(database, `webhook_deliveries WHERE tenant = $1 AND status = 'delivered'`, [business]),
  ).toBe(1)
})

test('the eleventh failed attempt is the last', async ({ database }) => {
  const business = await addBusiness(database)
  await queue(database, business, 'http://127.0.0.1:9/')
  await database.query('UPDATE webhook_deliveries SET tries = 10, attempts = 10 WHERE tenant = $1', [
    business,
  ])
  const [claim] = await claimDeliveries(database, 1)
  const failed = { kind: 'failed', status: 500, error: 'the address answered 500' } as const
  expect(claim && (await settleDelivery(database, claim, failed))).toBe('dead')
  expect(await rowOf(database, business)).toMatchObject({ status: 'dead', attempts: 11 })
})

test('those that ended before the days of retention are deleted, and no others', async ({ database }) => {
  const business = await addBusiness(database)
  await queue(database, business, 'http://127.0.0.1:9/', 3)
  const age = (nth: number, days: number, isEnded: boolean) =>
    database.query(
      `UPDATE webhook_deliveries SET created_at = clock_timestamp() - $2::int * interval '1 day', ended_at = CASE WHEN $3 THEN clock_timestamp() END
       WHERE webhook_id = (SELECT webhook_id FROM webhook_deliveries WHERE tenant = $1 ORDER BY webhook_id OFFSET $4::int LIMIT 1)`,
      [business, days, isEnded, nth],
    )
  await age(0, 31, true)
  await age(1, 31, false)
  await age(2, 29, true)
  await webhookRetention.sweep?.(database, 30)
  const { rows } = await database.query(
    'SELECT ended_at IS NOT NULL AS ended FROM webhook_deliveries WHERE tenant = $1 ORDER BY ended_at NULLS FIRST',
    [business],
  )
  expect(rows).toEqual([{ ended: false }, { ended: true }])
})
