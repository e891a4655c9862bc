// backends: either
// asserts: invariants

import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { pino } from 'pino'
import { expect } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import { toRoleDatabase } from '../../src/infra/database/role-database.ts'
import type { Backend } from '../support/backend.ts'
import { startServer, type TestServer } from '../support/http.ts'
import { closing, runtimeTest } from '../support/integration-test.ts'
import { type LeakyVendor, leaks, mark, startLeakyVendor, waits } from '../support/leaky-vendor.ts'
import { dumpDatabase, leaksOf, openSql, type WatchedRedis, watchRedis } from '../support/registry-canary.ts'
import type { TestRuntime } from '../support/test-runtime.ts'
import { isGate } from '../support/tier.ts'
import { startTraceCollector, type TraceCollector } from '../support/trace-collector.ts'
import { callWith } from '../support/vendors.ts'

/** A secret in every key and in every header of an endpoint; every path an error can take, and every place it can end in. */

const admin = 'the-admin-token-of-this-test'
const json = { 'content-type': 'application/json' }
const soon = { baseMs: 1, maxMs: 1 }
const secrets: string[] = []
const newSecret = (prefix: string): string => {
  const secret = `${prefix}-${randomBytes(20).toString('hex')}`
  secrets.push(secret)
  return secret
}

let backend: Backend
let vendor: LeakyVendor
let database: Database
let runtime: TestRuntime
let server: TestServer
let redis: WatchedRedis | null = null
let collector: TraceCollector
/** What callers, admins and outside servers received, and what was logged, before secrets were removed. */
const shown: string[] = []
const logged: string[] = []

const show = (what: string, value: unknown): void =>
  void shown.push(`${what}: ${inspect(value, { depth: 20, showHidden: true, maxStringLength: null })}`)

const test = runtimeTest
  .extend('vendor', { scope: 'file' }, closing(startLeakyVendor))
  .extend('collector', { scope: 'file' }, closing(startTraceCollector))
  .extend('redis', { scope: 'file' }, async ({ backend }, { onCleanup }) => {
    if (backend.config.redisUrl === null) return null
    const redis = await watchRedis(backend.config.redisUrl, backend.config.queuePrefix)
    onCleanup(() => redis[Symbol.asyncDispose]())
    return redis
  })
  .extend('runtimeOptions', { scope: 'file' }, ({ collector }) => {
    const take = (data: unknown, message: string): void =>
      void logged.push(inspect([message, data], { depth: 20, showHidden: true }))
    return {
      models: null,
      config: { otlpEndpoint: collector.url },
      log: { debug: take, info: take, warn: take, error: take },
      traceDelays: { everyMs: 50 },
      modelRetryDelays: { cooling: soon, disabled: soon, retry: { attempts: 2, ...soon } },
    }
  })
  .extend('server', { scope: 'file' }, async ({ runtime }, { onCleanup }) => {
    const logger = pino({ level: 'trace' }, { write: (line) => void logged.push(line) })
    const server = await startServer({ runtime, auth: 'required', adminToken: admin, logger })
    onCleanup(() => server.close())
    return server
  })
test.beforeAll(({ backend: b, redis: w, vendor: v, collector: c, database: d, runtime: r, server: s }) => {
  ;[backend, redis, vendor, collector, database, runtime, server] = [b, w, v, c, d, r, s]
})

const call = async (method: string, path: string, json?: unknown) => {
  const reply = await server.call(method, path, { token: admin, ...(json !== undefined && { json }) })
  shown.push(`${method} ${path} ${reply.status} ${JSON.stringify([...reply.headers])} ${reply.text}`)
  return reply
}
const make = async (path: string, json: unknown): Promise<string> => {
  const { status, body, text } = await call('POST', `/admin/v1${path}`, json)
  expect([status, text]).toEqual([201, text])
  return body.id
}

const formats: { id: string; name: string }[] = []

type Way = { vendor: string; key: string; endpoint: string; model: string }

/** So that a busy machine keeps them, and so that a stall costs nothing. */
const patient = { first_byte_ms: 10_000, idle_ms: 10_000, total_ms: 20_000 }
const hasty = { first_byte_ms: 150, idle_ms: 100, total_ms: 400 }

/** A vendor of its own, so that what became of one key says nothing of another. `format` absent: protocol `openai`. */
const addWay = async (name: string, category: string, format?: string, timeouts = patient): Promise<Way> => {
  const id = await make('/vendors', { name })
  const key = await make(`/vendors/${id}/keys`, { label: name, secret: newSecret('sk') })
  const endpoint = await make(`/vendors/${id}/endpoints`, {
    name,
    base_url: `${vendor.url}/${name}`,
    protocol: format === undefined ? 'openai' : 'http',
    headers: { 'x-tenant': newSecret('tenant') },
    timeouts,
  })
  const response_format_id = formats.find((one) => one.name === format)?.id
  const about = { name, upstream_name: 'up', endpoint_id: endpoint, category, response_format_id }
  return { vendor: id, key, endpoint, model: await make(`/vendors/${id}/models`, about) }
}

/** Straight from the call path: the error with all that hangs on it. */
const ask = async (model: string, more: Parameters<typeof callWith>[2] = {}): Promise<void> =>
  show(model, await callWith(runtime, { role: 'x', model }, more).catch((error: unknown) => error))
const whole = { ask: { stream: false } }
const input = { ask: { messages: [], input: ['one', 'two'], query: 'which', stream: false } }
const prompt = { ask: { messages: [], prompt: 'a fish', stream: false } }

const messages = [{ role: 'user', content: 'hi' }]
const chat = (model: string, stream: boolean) =>
  call('POST', '/v1/chat/completions', { model, messages, stream })
const embeddings = (model: string) => call('POST', '/v1/embeddings', { model, input: ['one', 'two'] })
const tryOut = ({ vendor: id, model }: Way) =>
  call('POST', `/admin/v1/vendors/${id}/models/${model}/test`, {})
const probe = ({ vendor: id, key }: Way) => call('POST', `/admin/v1/vendors/${id}/keys/${key}/probe`, {})

/** Who waits without end is asked in haste. Of a job only these end a poll at once; after others it is asked again. */
const endsPoll = new Set(['400', '401', '404', '422', '500', 'cut at 280', 'half of it', 'an error inside'])
const meets = (way: string, leak: string): boolean =>
  way === 'poll' ? endsPoll.has(leak) : way.startsWith('hasty') === waits.has(leak)
/** In the gate each leak is tried on a third of the ways, the next leak on a different third. */
const isDrawn = (wayAt: number, leakAt: number): boolean => !isGate || (wayAt + leakAt) % 3 === 0

/** What stands in the tables, past all roles and policies. */
const dumpTables = async (): Promise<string> => {
  if (backend.config.database.kind !== 'postgres') return dumpDatabase(toRoleDatabase(database, 'postgres'))
  await using sql = await openSql(backend.config.database.url)
  return await dumpDatabase(sql)
}

test('no secret appears in responses, errors, logs, metrics, traces, the database or Redis, however a vendor fails', async () => {
  await make('/response-formats', {
    name: 'quick poll',
    category: 'text-to-video',
    request: { path: '/videos', body: { prompt: '{{prompt}}' } },
    paths: { job_id: 'id', status: 'state', video: 'url', error: 'error' },
    poll: { path: '/jobs/{{job_id}}', interval_ms: 1, done: ['done'] },
  })
  formats.push(...(await call('GET', '/admin/v1/response-formats?limit=200')).body.data)
  const openai = await addWay('openai', 'text')
  const vectors = await addWay('vectors', 'embedding')
  const deepseek = await addWay('deepseek', 'text', 'deepseek-chat')
  const anthropic = await addWay('anthropic', 'text', 'anthropic-messages')
  const gemini = await addWay('gemini', 'text', 'gemini-generate-content')
  const ollama = await addWay('ollama', 'text', 'ollama-chat')
  await addWay('cohere', 'embedding', 'cohere-embeddings')
  const ranks = await addWay('ranks', 'rerank', 'rerank')
  const images = await addWay('images', 'text-to-image', 'openai-images')
  const poll = await addWay('poll', 'text-to-video', 'quick poll')
  await addWay('hasty', 'text', undefined, hasty)
  await addWay('hasty-deepseek', 'text', 'deepseek-chat', hasty)
  await make('/routes', { role: 'planner', models: [{ model: 'openai' }, { model: 'deepseek' }] })

  /** In turn for each vendor, all vendors at once. */
  const ways: Record<string, readonly (() => Promise<unknown>)[]> = {
    openai: [
      () => ask('openai'),
      () => chat('openai', true),
      () => chat('openai', false),
      () => probe(openai),
    ],
    vectors: [() => ask('vectors', input), () => embeddings('vectors'), () => tryOut(vectors)],
    deepseek: [() => ask('deepseek', whole), () => chat('deepseek', true), () => tryOut(deepseek)],
    anthropic: [() => ask('anthropic'), () => probe(anthropic)],
    gemini: [() => ask('gemini'), () => tryOut(gemini)],
    ollama: [() => ask('ollama'), () => tryOut(ollama)],
    cohere: [() => ask('cohere', input), () => embeddings('cohere')],
    ranks: [() => ask('ranks', input), () => tryOut(ranks)],
    images: [() => ask('images', prompt), () => tryOut(images)],
    poll: [() => ask('poll', prompt), () => tryOut(poll)],
    hasty: [() => ask('hasty'), () => chat('hasty', true)],
    'hasty-deepseek': [() => ask('hasty-deepseek', whole), () => chat('hasty-deepseek', false)],
  }
  for (const [leakAt, leak] of Object.keys(leaks).entries()) {
    vendor.leak = leak
    const meet = async ([way, steps]: [string, (typeof ways)[string]]): Promise<void> => {
      // a key that waits for its next probe is skipped: then no vendor was called
      for (let nth = 0; nth < steps.length || !vendor.seen.has(`${leak} ${way}`); nth++)
        await steps[nth % steps.length]?.()
    }
    await Promise.all(
      Object.entries(ways)
        .filter(([way], at) => meets(way, leak) && (waits.has(leak) || isDrawn(at, leakAt)))
        .map(meet),
    )
  }

  for (const leak of ['401', 'cut at 280', 'another shape', 'an event that is no JSON']) {
    vendor.leak = leak
    const run = await runtime.complete({ prompt: `try ${leak}`, limits: { timeout_ms: 20_000 } })
    show('run', run)
    show('state', await runtime.stateOf(run.id))
    const trace = run.id.replace('run_', '')
    await collector.received(
      'work on it',
      ({ traceId, name }) => traceId === trace && name.startsWith('invoke_workflow'),
    )
  }

  // an admin's own slips: the answer may name the field and nothing that stood in it
  const [first, second, third] = [newSecret('slip'), newSecret('slip'), newSecret('slip')]
  const keys = `/admin/v1/vendors/${openai.vendor}/keys`
  await call('POST', keys, { label: '', secret: first, limits: first })
  await call('POST', `${keys}/${openai.key}/rotate`, { secret: { value: first } })
  await call('POST', `/admin/v1/vendors/${openai.vendor}/endpoints`, {
    name: 'x',
    base_url: `https://user:${first}@example.org`,
    protocol: 'openai',
    headers: { 'x-key': `${second}\n` },
  })
  for (const raw of [`{"secret": ${third}`, `{"secret": "${third}`, third])
    shown.push((await server.call('POST', keys, { token: admin, raw, headers: json })).text)

  for (const { vendor: id, model } of [openai, deepseek, anthropic, vectors, poll]) {
    for (const what of ['keys', 'endpoints', 'models']) await call('GET', `/admin/v1/vendors/${id}/${what}`)
    await call('GET', `/admin/v1/vendors/${id}/models/${model}/unread-answers`)
  }
  for (const path of ['/metrics', '/healthz', '/readyz', '/v1/models', '/admin/v1/usage?group_by=key'])
    await call('GET', path)

  const places: Record<string, string> = {
    answers: shown.join('\n'),
    logs: logged.join('\n'),
    database: await dumpTables(),
    traces: collector.raw.join('\n'),
    ...(await redis?.dump()),
  }
  // or the search has looked in the wrong place
  const signs: Record<string, readonly string[]> = {
    answers: [mark, '[secret]', openai.key],
    logs: ['model call again', '/v1/chat/completions'],
    database: [mark, '[secret]', openai.key],
    traces: ['invoke_workflow', 'mason.model.role', 'model_unauthorized'],
    commands: ['evalsha', backend.config.queuePrefix],
    keys: [backend.config.queuePrefix],
  }
  for (const [place, text] of Object.entries(places))
    for (const sign of signs[place] ?? []) expect(text, place).toContain(sign)
  expect(Object.entries(places).flatMap(([place, text]) => leaksOf(place, text, secrets))).toEqual([])
})
