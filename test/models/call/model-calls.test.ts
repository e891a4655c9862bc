// backends: either

import { beforeEach, expect } from 'vitest'
import type { Database } from '../../../src/infra/database/database.ts'
import type { Hints } from '../../../src/infra/queue/hints.ts'
import type { ModelErrorDetail } from '../../../src/models/call/call-errors.ts'
import { formatInputSchema } from '../../../src/models/schemas/response-format.ts'
import type { MasonError } from '../../../src/state/errors.ts'
import { type FakeModel, startFakeModel } from '../../support/fake-model/fake-model.ts'
import { closing, runtimeTest } from '../../support/integration-test.ts'
import { parseMetrics } from '../../support/metrics.ts'
import { failureOf, wholeOf } from '../../support/models.ts'
import { until } from '../../support/runs.ts'
import type { TestRuntime } from '../../support/test-runtime.ts'
import { addRoute, addVendor, byKey, callWith, labelsOf, quickWaits, someone } from '../../support/vendors.ts'

/** THE call path over a real registry, health and ledger, with two fake vendors and three keys. */

let runtime: TestRuntime
let database: Database
let north: FakeModel
let south: FakeModel
let ids: Record<string, string>

/** What is refused stays closed until a test opens it: no machine is so slow that it is open before. */
const hour = 3_600_000
const modelWaits = { ...quickWaits, disabled: { baseMs: hour, maxMs: hour } }
let hints: Hints
/** Looks of this process at what the database says of keys. */
const looks = { begun: 0, done: 0 }
const wrap = {
  database: (opened: Database): Database => ({
    ...opened,
    async query<Row>(text: string, values?: readonly unknown[]) {
      const nth = text.includes("FROM model_health WHERE state <> 'healthy'") ? ++looks.begun : 0
      const answer = await opened.query<Row>(text, values)
      looks.done = Math.max(looks.done, nth)
      return answer
    },
  }),
  hints(opened: Hints): Hints {
    hints = opened
    return opened
  },
}

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, () => ({
    models: null,
    worker: false,
    modelRetryDelays: modelWaits,
    wrap,
  }))
  .extend('south', { scope: 'file' }, closing(startFakeModel))
test.beforeAll(async ({ model, south: s, opened }) => {
  ;[north, south] = [model, s]
  ;({ runtime, database } = opened)
  ids = {
    ...(await addVendor(runtime, 'North', north.baseUrl, { keys: ['n1', 'n2'], models: ['north-1'] })),
    ...(await addVendor(runtime, 'South', south.baseUrl, { keys: ['s1'], models: ['south-1'] })),
  }
  await addRoute(runtime, 'planner', ['north-1', 'south-1'])
})
beforeEach(async () => {
  for (const server of [north, south]) server.reset()
  await until('everything is healthy again', async () => (await unwell()).length === 0)
})

const planner = { role: 'planner' }

const unwell = async (): Promise<unknown[]> => {
  await database.query(
    "UPDATE model_health SET state = 'healthy', failures = 0, until = NULL WHERE state <> 'healthy'",
  )
  hints.publish('model-health', '')
  const healthy = [...parseMetrics(await runtime.metrics.text())].filter(([name]) =>
    name.startsWith('mason_model_keys_healthy'),
  )
  return healthy.filter(([name, keys]) => keys < (name.includes('"North"') ? 2 : 1))
}
type Standing = { state: string; left_ms: number | null; last_error: { code: string } }
const healthOf = async (label: string): Promise<Standing | undefined> =>
  (
    await database.query<Standing>(
      `SELECT state, (extract(epoch FROM until - clock_timestamp()) * 1000)::float8 AS left_ms, last_error
       FROM model_health WHERE split_part(subject_id, ' ', 1) = $1 ORDER BY state <> 'healthy' DESC LIMIT 1`,
      [ids[label]],
    )
  ).rows[0]
/** As if the time were over for which a key is closed; this process knows. */
const letItBeDue = async (label: string): Promise<void> => {
  await until('it is closed', async () => ((await healthOf(label))?.left_ms ?? 0) > 0)
  await database.query(
    "UPDATE model_health SET until = clock_timestamp() WHERE split_part(subject_id, ' ', 1) = $1",
    [ids[label]],
  )
  const before = looks.begun
  await until('a look at it', () => {
    hints.publish('model-health', '')
    return looks.done > before
  })
}
const detailOf = (error: MasonError): ModelErrorDetail => error.detail as ModelErrorDetail

const limited = { failure: { status: 429, headers: { 'retry-after': '3600' } } }
const refused = { failure: { status: 401 } }
const down = { failure: { status: 503 } }

test('a call uses the first model of the route, and shares its keys', async () => {
  north.script(byKey({ '*': [{ text: 'from the north' }] }))
  // a new view of the registry begins with the first key again
  for (const _ of [1, 2, 3, 4, 5, 6])
    expect((await callWith(runtime, planner)).result.text).toBe('from the north')
  expect(new Set(labelsOf(north))).toEqual(new Set(['n1', 'n2']))
  expect(south.requests()).toEqual([])
})

test('a 429 cools exactly that key with the model for as long as it says, and the other key answers', async () => {
  north.script(byKey({ n1: [limited, { text: 'back' }], n2: [{ text: 'n2' }] }))
  const texts = new Set<string>()
  for (const _ of [1, 2, 3]) texts.add((await callWith(runtime, planner)).result.text)
  expect(labelsOf(north).filter((label) => label === 'n1')).toHaveLength(1)
  expect([...texts]).toEqual(['n2'])
  await until('the key cools', async () => (await healthOf('n1'))?.state === 'cooling')
  expect((await healthOf('n1'))?.left_ms).toBeGreaterThan(hour - 60_000)
  expect((await healthOf('n1'))?.left_ms).toBeLessThanOrEqual(hour)
  expect((await healthOf('n2'))?.state ?? 'healthy').toBe('healthy')
  await letItBeDue('n1')
  const back = await until(
    'it comes back',
    async () => (await callWith(runtime, planner)).result.text === 'back',
  )
  expect(back).toBe(true)
  await until('it is healthy', async () => (await healthOf('n1'))?.state === 'healthy')
})

test('a 401 disables the key, says so, and it comes back by itself', async () => {
  north.script(byKey({ n1: [refused, { text: 'recovered' }], n2: [{ text: 'n2' }] }))
  const answered = await until('n1 was asked', async () => {
    const one = await callWith(runtime, planner)
    return labelsOf(north).includes('n1') && one
  })
  expect(answered.result.text).toBe('n2')
  expect(answered.attempts).toMatchObject([{ model: 'north-1', key_label: 'n1', code: 'model_unauthorized' }])
  await until('it is disabled', async () => (await healthOf('n1'))?.state === 'disabled')
  expect((await healthOf('n1'))?.last_error).toMatchObject({ code: 'model_unauthorized' })
  await letItBeDue('n1')
  await until('it is back', async () => (await callWith(runtime, planner)).result.text === 'recovered')
})

test('a vendor that is down is skipped for the next one, and its keys stay healthy', async () => {
  north.script(byKey({ '*': [down] }))
  south.script(byKey({ s1: [{ text: 'from the south' }] }))
  const answered = await callWith(runtime, planner)
  expect(answered).toMatchObject({ model: 'south-1', result: { text: 'from the south' } })
  // the other key of the same endpoint would meet the same
  expect(north.requests()).toHaveLength(1)
  expect(await healthOf('n1')).toSatisfy(
    (row?: { state: string }) => row === undefined || row.state === 'healthy',
  )
})

test('a call with no candidate left fails with one error that lists each candidate and why', async () => {
  north.script(byKey({ '*': [refused] }))
  south.script(byKey({ '*': [{ failure: { status: 429, headers: { 'retry-after': '3600' } } }] }))
  const error = await failureOf(callWith(runtime, planner))
  expect(error.code).toBe('no_model_available')
  expect(detailOf(error)).toMatchObject({ attempts: 3 })
  expect(
    detailOf(error)
      .candidates?.map(({ model, code }) => [model, code])
      .toSorted(),
  ).toEqual([
    ['north-1', 'model_unauthorized'],
    ['south-1', 'model_rate_limited'],
  ])
  expect(JSON.stringify([error.message, error.detail])).not.toMatch(/"n1|"n2|"s1|127\.0\.0\.1/)
  expect(detailOf(wholeOf(error)).candidates).toHaveLength(3)
  expect(detailOf(wholeOf(error)).candidates).toEqual(
    expect.arrayContaining([
      { model: 'north-1', key_label: 'n1', code: 'model_unauthorized', why: expect.stringContaining('401') },
      { model: 'north-1', key_label: 'n2', code: 'model_unauthorized', why: expect.stringContaining('401') },
      { model: 'south-1', key_label: 's1', code: 'model_rate_limited', why: expect.stringContaining('429') },
    ]),
  )
  expect(error.message).not.toContain('sk-secret')
  const again = await failureOf(callWith(runtime, planner))
  expect(detailOf(again).attempts).toBe(0)
  expect(
    detailOf(again)
      .candidates?.map(({ why }) => why)
      .join(),
  ).toMatch(/disabled by the vendor.*cooling/)
  // what is written later would be of the next test
  await until('it is entered', async () => (await healthOf('s1'))?.state === 'cooling')
})

test('a failure after the first token gives a node a new attempt, and the OpenAI-compatible endpoint an end', async () => {
  const cut = { text: 'half an answer', failure: 'cut' as const }
  north.script(byKey({ '*': [cut] }))
  south.script(byKey({ '*': [{ text: 'whole' }] }))
  const heard: [number, string][] = []
  const onDelta = ({ text }: { text: string }, attempt: number) => void heard.push([attempt, text])
  expect((await callWith(runtime, planner, { onDelta })).result.text).toBe('whole')
  // the other key of north may be tried before south
  const textOf = (wanted: number) => heard.map(([attempt, text]) => (attempt === wanted ? text : '')).join('')
  expect('half an answer'.startsWith(textOf(1)) && textOf(1) !== '').toBe(true)
  const last = heard.at(-1)?.[0] ?? 0
  expect([2, 3]).toContain(last)
  expect(textOf(last)).toBe('whole')
  south.reset()
  const error = await failureOf(callWith(runtime, { ...planner, oneShot: true }))
  expect(error.code).toBe('model_unavailable')
  expect(south.requests()).toEqual([])
})

test('only one of 50 concurrent calls probes a key that was refused', async () => {
  const held = { hold: 'probe', text: 'ok' }
  south.script(byKey({ s1: [refused, held, { text: 'ok' }] }))
  const wanted = { role: 'planner', model: 'south-1' }
  expect((await failureOf(callWith(runtime, wanted))).code).toBe('model_unauthorized')
  await letItBeDue('s1')
  const calls = Array.from({ length: 50 }, () => callWith(runtime, wanted))
  await until('the probe is on its way', () => south.held() === 1)
  expect(south.requests()).toHaveLength(2)
  south.release('probe')
  const answers = await Promise.all(calls)
  expect(answers.map(({ result }) => result.text)).toEqual(Array(50).fill('ok'))
  expect(south.requests()).toHaveLength(51)
})

test('an aborted call is in the ledger with the usage that was reported', async () => {
  north.script(byKey({ '*': [{ text: 'abc', failure: 'cut_after_usage' }] }))
  south.script(byKey({ '*': [{ text: 'abcdef', failure: 'stall_after_first_chunk' }] }))
  const caller = { ...someone, run_id: 'run_aborted' }
  const controller = new AbortController()
  const call = callWith(runtime, planner, {
    caller,
    signal: controller.signal,
    onDelta: (_, attempt) => void (attempt === 2 && controller.abort(new Error('enough'))),
  })
  await expect(call).rejects.toThrow('enough')
  const rows = await until('both are entered', async () => {
    const found = await database.query<{
      status: string
      model_name: string
      total_tokens: number
      estimated: boolean
    }>(
      'SELECT status, model_name, total_tokens::int AS total_tokens, estimated FROM usage_ledger WHERE run_id = $1 ORDER BY model_name',
      [caller.run_id],
    )
    return found.rows.length === 2 && found.rows
  })
  expect(rows).toMatchObject([
    { status: 'failed', model_name: 'north-1', total_tokens: 15, estimated: false },
    { status: 'aborted', model_name: 'south-1', estimated: true },
  ])
})

test('a model that fails for two prompts is left alone, and comes back', async () => {
  south.script(byKey({ s1: [down, down, down, down, down, { text: 'up' }] }))
  const wanted = { role: 'planner', model: 'south-1' }
  const askFor = (content: string) =>
    callWith(runtime, wanted, { ask: { messages: [{ role: 'user', content }] } })
  expect((await failureOf(askFor('one'))).code).toBe('model_unavailable')
  expect((await askFor('two')).result.text).toBe('up')
  const row = await until('it is healthy', async () => {
    const { rows } = await database.query<{ state: string; last_error: { code: string } }>(
      "SELECT state, last_error FROM model_health WHERE subject = 'model' AND subject_id = $1",
      [ids['south-1']],
    )
    return rows[0]?.state === 'healthy' && rows[0]
  })
  expect(row.last_error).toMatchObject({ code: 'model_unavailable' })
})

test('a key at its limit is skipped for the next, and named when none is left', async () => {
  await addVendor(runtime, 'Limited', south.baseUrl, {
    keys: ['l1', 'l2'],
    limits: { rpm: 2 },
    models: ['limited-1'],
  })
  south.script(byKey({ '*': [{ text: 'ok' }] }))
  const wanted = { role: 'planner', model: 'limited-1', oneShot: true }
  for (const _ of [1, 2, 3, 4]) await callWith(runtime, wanted)
  expect(labelsOf(south).toSorted()).toEqual(['l1', 'l1', 'l2', 'l2'])
  const error = await failureOf(callWith(runtime, wanted))
  expect(error.code).toBe('no_model_available')
  expect(error.message).toMatch(/limited-1: its limit rpm is reached$/)
  expect(wholeOf(error).message).toMatch(
    /with key "l[12]": its limit rpm is reached.*with key "l[12]": its limit rpm/,
  )
  expect(detailOf(error).retry_after_ms).toBeGreaterThan(0)
})

test('the last usage of a stream counts, and is entered once', async () => {
  south.script(byKey({ '*': [{ text: 'a longer answer in pieces', failure: 'cumulative_usage' }] }))
  const caller = { ...someone, run_id: 'run_cumulative' }
  const { usage } = await callWith(runtime, { role: 'planner', model: 'south-1' }, { caller })
  expect(usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 })
  const entered = await until('it is entered', async () => {
    const { rows } = await database.query(
      'SELECT total_tokens::int AS total FROM usage_ledger WHERE run_id = $1',
      [caller.run_id],
    )
    return rows.length > 0 && rows
  })
  expect(entered).toEqual([{ total: 15 }])
})

test('a response that its format cannot read is kept for the admin, and disables no key', async () => {
  const format = await runtime.admin.registry.formats.create(
    {},
    formatInputSchema.parse({
      name: 'odd',
      paths: { text: 'odd.text', usage: { prompt_tokens: 'odd.in', completion_tokens: 'odd.out' } },
      samples: [{ raw: { odd: { text: 'hi', in: 1, out: 2 } }, expected: { text: 'hi' } }],
    }),
  )
  const odd = await addVendor(runtime, 'Odd', south.baseUrl, {
    keys: ['o1'],
    models: ['odd-1'],
    model: { response_format_id: format.id },
  })
  const wanted = { role: 'planner', model: 'odd-1' }
  const good = { odd: { text: 'read by data', in: 3, out: 4 } }
  const bad = { strange: 'sk-secret-of-o1 is shown here' }
  south.script(
    byKey({ o1: [{ failure: { status: 200, body: good } }, { failure: { status: 200, body: bad } }] }),
  )
  const answered = await callWith(runtime, wanted)
  expect(answered.result.text).toBe('read by data')
  expect(answered.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 })
  const error = await failureOf(callWith(runtime, wanted))
  expect(error.code).toBe('model_unreadable_answer')
  const kept = await until('it is kept', async () => {
    const { rows } = await database.query<{ place: string; raw: string }>(
      'SELECT place, raw FROM unread_answers WHERE model_id = $1',
      [odd['odd-1']],
    )
    return rows[0]
  })
  expect(kept.place).toBeTruthy()
  expect(kept.raw).toContain('strange')
  expect(kept.raw).not.toContain('sk-secret')
  ids.o1 = odd.o1 ?? ''
  expect((await healthOf('o1'))?.state ?? 'healthy').toBe('healthy')
})

test('an admin tests a key and a model, and sees the raw response beside what was read', async () => {
  const { probes } = runtime.admin.registry
  const signal = new AbortController().signal
  south.script(byKey({ s1: [refused, { text: 'fine' }] }))
  const first = await probes.probe(ids.s1 ?? '', signal)
  expect(first).toMatchObject({ ok: false, error: { code: 'model_unauthorized' } })
  await until('it is disabled', async () => (await healthOf('s1'))?.state === 'disabled')
  expect(await probes.probe(ids.s1 ?? '', signal)).toMatchObject({ ok: true, error: null })
  await until('it is healthy', async () => (await healthOf('s1'))?.state === 'healthy')
  const tested = await probes.test(ids['south-1'] ?? '', { prompt: 'Hello?' }, signal)
  expect(tested).toMatchObject({ ok: true, parsed: { text: 'fine' }, usage: { total_tokens: 15 } })
  expect(JSON.stringify(tested?.raw)).toContain('choices')
  expect(await probes.probe('key_none', signal)).toBeNull()
})
