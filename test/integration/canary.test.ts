import { inspect } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import type { Log } from '../../src/state/ports.ts'
import { type Backend, openBackend } from '../support/backend.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model.ts'
import { openTestRuntime, type TestRuntime } from '../support/test-runtime.ts'

const secret = 'sk-nightjar-0123456789abcdef'
const held = /nightjar|0123456789abcdef|bmlnaHRqYX|uaWdodGph|5pZ2h0am|xyzzy-tenant/

let backend: Backend
let model: FakeModel
let database: Database
let runtime: TestRuntime
const logged: unknown[] = []

beforeAll(async () => {
  backend = await openBackend()
  model = await startFakeModel()
  const take = (data: unknown, message: string): void => void logged.push(data, message)
  const log: Log = { debug: take, info: take, warn: take, error: take }
  runtime = await openTestRuntime(backend, {
    log,
    wrap: {
      database(opened) {
        database = opened
        return opened
      },
    },
  })
})
afterAll(async () => {
  await runtime.close()
  await model.close()
  await backend.drop()
})

/** Everything that stands in the database, as text. */
const dump = async (): Promise<string> => {
  const { rows } = await database.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'mason' AND table_type = 'BASE TABLE'`,
  )
  const texts: string[] = []
  for (const { name } of rows) {
    const found = await database
      .query<{ text: string }>(`SELECT to_json(t)::text AS text FROM ${name} t`)
      .catch(() => ({ rows: [] }))
    texts.push(name, ...found.rows.map(({ text }) => text))
  }
  return texts.join('\n')
}

test('a vendor that echoes what it was sent makes no secret show in errors, runs, logs or the database', async () => {
  const { vendors, keys, endpoints, models, routes } = runtime.admin.registry
  const { id: vendor_id } = await vendors.create({}, { name: 'echo', status: 'active' })
  const scope = { vendor_id }
  const endpoint = await endpoints.create(scope, {
    name: 'chat',
    base_url: model.baseUrl,
    protocol: 'openai',
    categories: [],
    headers: { 'x-tenant': 'xyzzy-tenant-key' },
    timeouts: {},
    status: 'active',
  })
  const key = await keys.create(scope, { label: 'k', secret, limits: {}, status: 'active' })
  await models.create(scope, {
    name: 'echo',
    upstream_name: 'fake',
    category: 'text',
    endpoint_id: endpoint.id,
    dialect: 'tools',
    capabilities: [],
    status: 'active',
  })
  await routes.create({}, { role: 'planner', models: [{ model: 'echo' }], strategy: 'priority' })

  const echoes = (headers: Record<string, string>): [status: number, body: unknown][] => {
    const { authorization = '', 'x-tenant': tenant } = headers
    const basic = Buffer.from(`user:${authorization}`).toString('base64')
    return [
      [401, { error: { message: `no such key: ${authorization}` } }],
      [400, { error: { message: `no such tenant: ${tenant}`, param: authorization } }],
      [500, `<html>${JSON.stringify(headers)}</html>`],
      [429, { error: { message: `slow down, ${basic}`, code: encodeURIComponent(authorization) } }],
      [200, { sent: headers }],
      [403, { error: { message: `${'x'.repeat(180)} ${authorization} ${'y'.repeat(300)}` } }],
      [404, { error: { message: `${'x'.repeat(280)} ${authorization} ${'y'.repeat(300)}` } }],
      [422, { error: { message: `${'x'.repeat(480)} ${authorization} ${'y'.repeat(300)}` } }],
    ]
  }
  const shown: string[] = []
  for (let nth = 0; nth < 8; nth++) {
    model.script(({ headers }) => {
      const [status, body] = echoes(headers)[nth] as [number, unknown]
      return { fault: { status, body } }
    })
    const run = await runtime.complete({ prompt: `try ${nth}`, limits: { timeout_ms: 4000 } })
    shown.push(`run ${nth}: ${inspect(run, { depth: 20, showHidden: true })}`)
    shown.push(`state ${nth}: ${inspect(await runtime.stateOf(run.id), { depth: 20 })}`)
    const ask = { role: 'x', messages: [{ role: 'user', content: 'hi' } as const], tools: [], schema: null }
    const rest = { input: [], query: null, prompt: null, parameters: {}, stream: true }
    await keys.setStatus(scope, key.id, 'disabled')
    await keys.setStatus(scope, key.id, 'active')
    const caller = { business_id: 'default', user_id: null, run_id: null }
    const error = await runtime.modelService
      .ask(
        { role: 'x', model: 'echo', oneShot: true },
        { ...ask, ...rest },
        caller,
        () => {},
        AbortSignal.timeout(3000),
      )
      .catch((reason: unknown) => reason)
    shown.push(`error ${nth}: ${inspect(error, { depth: 20, showHidden: true })}`)
    shown.push(`key ${nth}: ${JSON.stringify(await keys.list(scope, { limit: 9 }))}`)
    shown.push(`endpoint ${nth}: ${JSON.stringify(await endpoints.list(scope, { limit: 9 }))}`)
  }
  expect(model.requests().length).toBeGreaterThanOrEqual(8)
  const places = [
    ...shown,
    `logs: ${inspect(logged, { depth: 20, showHidden: true })}`,
    `database: ${await dump()}`,
  ]
  for (const place of [shown.join('\n'), places.at(-1) ?? '']) {
    expect(place).toContain(key.id)
    for (const said of ['no such', 'xxxx', '[secret]']) expect(place).toContain(said)
  }
  const leaks = places.flatMap((text) => {
    const found = held.exec(text)
    return found
      ? [`${text.slice(0, 12)} … ${text.slice(Math.max(0, found.index - 120), found.index + 60)}`]
      : []
  })
  expect(leaks).toEqual([])
})
