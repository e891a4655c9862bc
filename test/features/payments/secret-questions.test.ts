// backends: either
// asserts: invariants

import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { pino } from 'pino'
import { describe, expect } from 'vitest'
import { expireInputs } from '../../../src/engine/runs/input-answers.ts'
import { openPaymentKeys, type PaymentKeys } from '../../../src/features/payments/keys/payment-keys.ts'
import { toAnswerPurpose, toQuestion } from '../../../src/features/payments/keys/sealed-texts.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { toRoleDatabase } from '../../../src/infra/database/role-database.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import type { RunView } from '../../../src/state/run-view.ts'
import { type Backend, unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { startServer, type TestServer } from '../../support/http.ts'
import { runtimeTest, adminToken as token } from '../../support/integration-test.ts'
import { openExecutorDatabase } from '../../support/payments.ts'
import { dumpDatabase, leaksOf, openSql } from '../../support/registry-canary.ts'
import { until } from '../../support/runs.ts'
import { calling } from '../../support/script.ts'
import { deadline, eventsOf, type TestRuntime } from '../../support/test-runtime.ts'

const toolFolders = [fileURLToPath(new URL('../../support/gate-tools', import.meta.url))]
const logged: string[] = []
const take = (data: unknown, message: string): void =>
  void logged.push(inspect([message, data], { depth: 20 }))

const test = runtimeTest
  .extend(
    'runtimeOptions',
    { scope: 'file' },
    { toolFolders, log: { debug: take, info: take, warn: take, error: take } },
  )
  .extend('server', { scope: 'file' }, async ({ runtime }, { onCleanup }) => {
    const logger = pino({ level: 'trace' }, { write: (line) => void logged.push(line) })
    const server = await startServer({ runtime, auth: 'required', adminToken: token, logger })
    onCleanup(() => server.close())
    return server
  })
  .extend('executor', { scope: 'file' }, ({ backend, database }, { onCleanup }) => {
    const executor = openExecutorDatabase(backend, database, 2)
    onCleanup(() => executor.close())
    return executor
  })

let [backend, database, runtime, model, server] = [] as unknown as [
  Backend,
  Database,
  TestRuntime,
  FakeModel,
  TestServer,
]
test.beforeAll(({ backend: b, database: d, runtime: r, model: m, server: s }) => {
  ;[backend, database, runtime, model, server] = [b, d, r, m, s]
})
let keys: PaymentKeys

const newCode = (): string => `otp-${randomBytes(12).toString('hex')}`
/** A run that asks for a code, or has ended where nothing can be asked. */
const ask = async (paymentId = unique('pay')): Promise<RunView> => {
  model.reset()
  model.script({ planner: [calling(['gate_secret', { payment_id: paymentId }]), { text: 'Done.' }] } as never)
  return runtime.complete({ prompt: 'Pay for it', session_id: unique('s') })
}
const answer = ({ id, input_request }: RunView, text: unknown) =>
  server.call('POST', `/v1/runs/${id}/input`, {
    token,
    json: { request_id: input_request?.id, answer: text },
  })
const resultOf = async (id: string) =>
  (await runtime.stateOf(id)).action_history[0]?.find(({ node }) => node === 'gate_secret')?.result
const rowOf = (id: string) =>
  queryOne<{ answer: unknown; sealed: string | null }>(
    database,
    'SELECT answer, sealed FROM input_requests WHERE run_id = $1',
    [id],
  )
const dumpTables = async (): Promise<string> => {
  if (backend.config.database.kind !== 'postgres') return dumpDatabase(toRoleDatabase(database, 'postgres'))
  await using sql = await openSql(backend.config.database.url)
  return await dumpDatabase(sql)
}
const exportAs = async (id: string, format: string): Promise<string> =>
  (await server.call('GET', `/v1/runs/${id}/trajectory?format=${format}`, { token })).text
const wait = (id: string) => runtime.of('default').wait(id, deadline())

describe('a secret question without an executor', () => {
  test('is not asked where no executor of payments has published a key: the call says what to start', async () => {
    const run = await ask()
    expect(run).toMatchObject({ status: 'completed', input_request: null })
    expect(await resultOf(run.id)).toMatchObject({
      ...{ is_error: true, code: 'secret_unreadable' },
      text: expect.stringContaining('start `mason payments`'),
    })
  })
})

describe('a secret question', () => {
  test.beforeAll(async ({ executor }) => {
    keys = await openPaymentKeys(executor, createMasterKeys(randomBytes(32).toString('base64')))
  })

  test('takes a text of 1 to 200 characters that fits its schema, once, and gives the call what the executor alone can read', async ({
    executor,
  }) => {
    const [payment_id, code] = [unique('pay'), newCode()]
    const run = await ask(payment_id)
    expect(run).toMatchObject({ status: 'input_required', input_request: { secret: true } })
    const wrong = newCode()
    for (const bad of [7, '', 'x'.repeat(201), `${wrong} !`]) {
      const { status, text } = await answer(run, bad)
      expect([bad, status]).toEqual([bad, 422])
      expect(leaksOf('the problem', text, [wrong])).toEqual([])
    }
    const replies = await Promise.all([answer(run, code), answer(run, code)])
    expect(replies.map(({ status }) => status).sort()).toEqual([202, 409])
    const { sealed } = (await until('the answer was ordered', () =>
      queryOne<{ sealed: string }>(
        executor,
        `SELECT sealed FROM payment_orders WHERE kind = 'answer' AND payment_id = $1`,
        [payment_id],
      ),
    )) as { sealed: string }
    const row = await queryOne<{ plan_seq: number; call_index: number }>(
      database,
      'SELECT plan_seq, call_index FROM input_requests WHERE run_id = $1',
      [run.id],
    )
    const question = toQuestion(run.id, row?.plan_seq ?? null, row?.call_index ?? null)
    const use = { business_id: 'default', user_id: run.user_id, payment_id, question }
    expect(await keys.unseal(sealed, toAnswerPurpose(use))).toBe(code)
    for (const [name, value] of Object.entries(use)) {
      const other = toAnswerPurpose({ ...use, [name]: `${value}x` })
      await expect(keys.unseal(sealed, other)).rejects.toMatchObject({ code: 'secret_unreadable' })
    }
    expect(await rowOf(run.id)).toEqual({ answer: { kind: 'answered', answer: '' }, sealed: null })
    await executor.query(`SELECT end_wait('default', 'payment', $1, '{"status":"succeeded"}')`, [payment_id])
    expect(await wait(run.id)).toMatchObject({ status: 'completed' })
    expect(await resultOf(run.id)).toMatchObject({ text: 'succeeded' })
    const places = {
      'the tables': await dumpTables(),
      'the events': JSON.stringify(await eventsOf(runtime.of('default'), run.id)),
      'the log': logged.join('\n'),
      'the prompts': JSON.stringify(model.requests('planner')),
      responses: replies.map(({ text }) => text).join(),
      'the exports': (
        await Promise.all(['xml', 'openai', 'atif'].map((format) => exportAs(run.id, format)))
      ).join(),
    }
    for (const [place, text] of Object.entries(places))
      expect(leaksOf(place, text, [code, wrong])).toEqual([])
    for (const text of [JSON.stringify(await runtime.stateOf(run.id)), places['the exports']])
      expect(text).not.toContain(sealed.slice(-40))
  })

  test('forgets an answer that nothing used: after 15 minutes, or when the run has ended', async () => {
    for (const [change, changed] of [
      [`UPDATE runs SET status = 'completed', ended_at = clock_timestamp() WHERE run_id = $1`, 'ended'],
      [
        `UPDATE input_requests SET answered_at = clock_timestamp() - interval '16 minutes' WHERE run_id = $1`,
        'late',
      ],
    ] as const) {
      const run = await ask()
      const sealed = 'eyJ.sealed'
      await database.query(
        `UPDATE input_requests SET answered_at = clock_timestamp(), answer = '{"kind":"answered","answer":""}', sealed = $2
         WHERE run_id = $1`,
        [run.id, sealed],
      )
      await expireInputs(database)
      expect([changed, (await rowOf(run.id))?.sealed]).toEqual([changed, sealed])
      await database.query(change, [run.id])
      await expireInputs(database)
      expect([changed, await rowOf(run.id)]).toEqual([changed, { answer: { kind: 'expired' }, sealed: null }])
    }
  })

  test('takes no plain text from an API process of an earlier version', async () => {
    const run = await ask()
    const plain = database.query(
      `UPDATE input_requests SET answered_at = clock_timestamp(), answer = '{"kind":"answered","answer":"123456"}' WHERE run_id = $1`,
      [run.id],
    )
    await expect(plain).rejects.toMatchObject({ code: '23514' })
  })
})
