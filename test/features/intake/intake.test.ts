// backends: either
// asserts: invariants

import { Queue, QueueEvents } from 'bullmq'
import { describe, expect } from 'vitest'
import { createRetentionSweep } from '../../../src/engine/sessions/retention-sweep.ts'
import { intakeRef } from '../../../src/features/intake/intake.ref.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { newRunId } from '../../../src/infra/lib/ids.ts'
import type { Queues } from '../../../src/infra/queue/queues.ts'
import { signJob } from '../../../src/infra/queue/signed-jobs.ts'
import { submitRun } from '../../../src/producer/submit-run.ts'
import { MasonError } from '../../../src/state/errors.ts'
import { type Backend, unique } from '../../support/backend.ts'
import { deliver, openTestIntake } from '../../support/intake.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { codeOf, count, unavailable, until } from '../../support/runs.ts'
import { deadline, type TestRuntime } from '../../support/test-runtime.ts'

let backend: Backend
let runtime: TestRuntime
let database: Database
let queues: Queues

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  wrap: { queues: (opened) => (queues = opened) },
}))
test.beforeAll(({ backend: b, database: d, runtime: r }) => {
  ;[backend, database, runtime] = [b, d, r]
})

/** Puts a job on the public queue as any BullMQ client would; where there is none, admits it as the leader of one does. */
const send = async (id: string, data: unknown, name = 'run'): Promise<void> => {
  if (backend.config.redisUrl === null)
    return void (await deliver(runtime.features.get(intakeRef).jobs, database, id, data, name))
  const queue = new Queue('mason-runs', {
    connection: { url: backend.config.redisUrl },
    prefix: backend.config.queuePrefix,
  })
  await queue.add(name, data, { jobId: id })
  await queue.close()
}
/** Admits nothing: whatever is valid fails. */
const failing = (error: unknown) => openTestIntake(database, { check: () => Promise.reject(error) })
const refuseAll = () => failing(new Error('not to be admitted'))

const runOf = (business: string) =>
  until('the run', async () => (await runtime.of(business).runs({ limit: 1 })).data[0])
const rejection = (id: string) =>
  queryOne<{ tenant: string | null; data: unknown; errors: { pointer: string; detail: string }[] }>(
    database,
    'SELECT tenant, data, faults AS errors FROM rejected_jobs WHERE job_id = $1',
    [id],
  )
const rejected = (id: string) => until(`the rejection of ${id}`, () => rejection(id))

test('a job of more than 32 MiB is refused without its data, also where it is nested too deeply', async () => {
  const prompt = 'x'.repeat(32 * 1024 * 1024)
  const deep = Array.from({ length: 200 }).reduce<unknown>((inner) => [inner], prompt)
  for (const data of [
    { prompt, user_id: 'u1' },
    { prompt, user_id: 'u1', metadata: deep },
  ]) {
    const id = unique('large')
    expect(await deliver(refuseAll(), database, id, data)).toEqual({
      errors: [{ pointer: '', detail: expect.stringContaining('POST /v1/files') }],
    })
    expect((await rejection(id))?.data).toBe('[this data is too large to be kept]')
  }
})

describe('a signed job', () => {
  const secret = 'a-queue-secret-of-32-characters--'
  const take = (id: string, data: unknown) =>
    deliver(openTestIntake(database, { secrets: [secret] }), database, id, data)

  test('becomes a run of the business that it was signed for, once, and no other job does', async () => {
    const [id, business] = [unique('job'), unique('b')]
    const data = { prompt: 'hello', user_id: 'u1', business_id: business }
    const job = signJob(id, data, secret)
    const first = await take(id, job)
    expect(first).toHaveProperty('run_id')
    expect(await take(id, job)).toEqual(first)
    expect(await take(`${id}-copy`, job)).toHaveProperty('errors')
    expect(await take(`${id}-plain`, data)).toHaveProperty('errors')
    expect((await runtime.of(business).runs({ limit: 10 })).data).toHaveLength(1)
    for (const [refused, detail] of [
      [`${id}-copy`, /does not fit the id/],
      [`${id}-plain`, /not signed/],
    ] as const)
      expect(await rejection(refused)).toMatchObject({
        tenant: null,
        errors: [{ pointer: '/signature', detail: expect.stringMatching(detail) }],
      })
  })
})

describe('a job on the public queue', () => {
  test('becomes a run of its business and gets done', async () => {
    const business = unique('b')
    await send(unique('job'), {
      prompt: 'hello',
      user_id: 'u1',
      business_id: business,
      metadata: { from: 'queue' },
    })
    const { id } = await runOf(business)
    const run = await runtime.of(business).wait(id, deadline())
    expect(run).toMatchObject({ status: 'completed', answer: 'Done.', metadata: { from: 'queue' } })
    checkInvariants(await runtime.stateOf(id, business))
  })

  test('sent again under its id is the same run', async () => {
    const business = unique('b')
    const id = unique('job')
    const data = { prompt: 'hello', user_id: 'u1', business_id: business }
    for (let at = 0; at < 3; at++) await send(id, data)
    await runOf(business)
    await send(id, data)
    const marker = unique('job')
    await send(marker, { prompt: 'hello', user_id: 'u1', business_id: unique('b') })
    await until('all jobs to be taken', () => count(database, 'idempotency WHERE key = $1', [marker]))
    expect(await count(database, 'runs WHERE tenant = $1', [business])).toBe(1)
  })

  test('sent again under its id with another body is rejected', async () => {
    const business = unique('b')
    const id = unique('job')
    const data = { prompt: 'hello', user_id: 'u1', business_id: business }
    await send(id, data)
    await runOf(business)
    // the run is there before its job has left the queue, which takes no second one of that id
    const { errors } = await until('the rejection', async () => {
      await send(id, { ...data, prompt: 'other' })
      return rejection(id)
    })
    expect(errors[0]?.detail).toMatch(/was used for another body; use a new .* job id/)
    expect(await count(database, 'runs WHERE tenant = $1', [business])).toBe(1)
  })

  test('by submitRun is checked before it is sent', async () => {
    const redisUrl = 'redis://127.0.0.1:1'
    expect(await codeOf(submitRun({ prompt: '', user_id: 'u1' }, { redisUrl }))).toBe('invalid_request')
  })
})

describe('a job that names an uploaded file', () => {
  const upload = async (business: string, text: string, length = text.length) => {
    const { files } = runtime.of(business)
    const { id } = await files.open({ name: 'a.csv', type: 'text/csv', length, sha256: null })
    async function* chunks() {
      yield Buffer.from(text)
    }
    await files.append(id, 0, chunks())
    return id
  }
  const age = (business: string) =>
    database.query(
      `WITH b AS (UPDATE blobs SET created_at = clock_timestamp() - interval '8 days' WHERE tenant = $1)
       UPDATE files SET touched_at = clock_timestamp() - interval '8 days' WHERE tenant = $1`,
      [business],
    )
  const sweep = () => createRetentionSweep(database, { blobsDays: 7, rejectedJobsDays: 30 })()

  test('becomes a run that reads it, also after more than seven days in the queue', async () => {
    const business = unique('b')
    const file_id = await upload(business, 'city,price\nUlm,3\n')
    const data = { ...good, business_id: business, files: [{ file_id }], delay_ms: 86_400_000 }
    await send(unique('job'), data)
    const { id } = await runOf(business)
    await age(business)
    await sweep()
    await database.query('UPDATE runs SET run_at = clock_timestamp() WHERE run_id = $1', [id])
    await queues.wake({ run_id: id, business_id: business })
    expect(await runtime.of(business).wait(id, deadline())).toMatchObject({ status: 'completed' })
    expect(JSON.stringify(await runtime.stateOf(id, business))).toContain('"name":"city"')
  })

  test('keeps it while its business has too many queued runs', async () => {
    const business = unique('b')
    const file_id = await upload(business, 'x')
    await database.query('UPDATE businesses SET quota_queued_runs = 1 WHERE tenant = $1', [business])
    const { submit, files } = runtime.of(business)
    await submit({ ...good, delay_ms: 86_400_000 })
    await age(business)
    const late = submit({ ...good, files: [{ file_id }] }, unique('job'))
    expect(await codeOf(late)).toBe('too_many_requests')
    await sweep()
    expect(await files.get(file_id)).toMatchObject({ id: file_id })
  })

  test('is rejected where the file is of another business, unknown or incomplete', async () => {
    const business = unique('b')
    for (const [file_id, says] of [
      ['file_0123456789abcdef0123456789abcdef', 'there is no uploaded file'],
      [await upload(unique('b'), 'x'), 'there is no uploaded file'],
      [await upload(business, 'x', 9), 'has 1 of 9 bytes; continue it by PATCH'],
    ] as const) {
      const id = unique('bad')
      await send(id, { ...good, business_id: business, files: [{ file_id }] })
      expect((await rejected(id)).errors).toEqual([
        { pointer: '/files/0/file_id', detail: expect.stringContaining(says) },
      ])
    }
  })
})

const good = { prompt: 'hello', user_id: 'u1' }
const deep = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
const file = { name: 'a.txt', type: 'text/plain', content_base64: 'aGk=' }

/** What is wrong -> the data, and the pointer of its error. */
const malformed: Record<string, [data: unknown, pointer: string]> = {
  'nothing at all': [null, ''],
  'a text': ['run it', ''],
  'a number': [7, ''],
  'a list': [[good], ''],
  'an empty object': [{}, '/prompt'],
  'no user': [{ prompt: 'x' }, '/user_id'],
  'a prompt of another type': [{ ...good, prompt: { text: 'x' } }, '/prompt'],
  'an empty prompt': [{ ...good, prompt: '' }, '/prompt'],
  'a prompt that is too long': [{ ...good, prompt: 'x'.repeat(1_000_001) }, '/prompt'],
  'an unknown field': [{ ...good, promt: 'x' }, '/promt'],
  'a field with a NUL in its name': [{ ...good, 'a\u0000b': 1 }, '/a\u0000b'],
  'a user with a space': [{ ...good, user_id: 'u 1' }, '/user_id'],
  'a business with a slash': [{ ...good, business_id: 'a/b' }, '/business_id'],
  'a priority out of range': [{ ...good, priority: 101 }, '/priority'],
  'a delay below zero': [{ ...good, delay_ms: -1 }, '/delay_ms'],
  'two files of one name': [{ ...good, files: [file, file] }, '/files'],
  'a file by a URL that is none of the web': [
    { ...good, files: [{ name: 'a', type: 't', url: 'ftp://x' }] },
    '/files/0/url',
  ],
  'bytes that are no base64': [
    { ...good, files: [{ ...file, content_base64: '***' }] },
    '/files/0/content_base64',
  ],
  'a run id that is no UUID v7': [{ ...good, run_id: `run_${'0'.repeat(32)}` }, '/run_id'],
  'a tool that is not there': [{ ...good, tools: ['calculate', 'nothing'] }, '/tools/1'],
  'a model that is not there': [{ ...good, models: { planner: 'nothing' } }, '/models/planner'],
  'a webhook to a private address': [{ ...good, webhook_url: 'http://127.0.0.1/' }, '/webhook_url'],
  'more values than an HTTP body may have': [{ ...good, metadata: { a: Array(50_000).fill(1) } }, ''],
  'more values than that in a signed payload': [
    { payload: JSON.stringify(Array(50_001).fill(1)), signature: 'none' },
    '/signature',
  ],
  'metadata nested very deeply': [{ ...good, metadata: { a: deep(3000) } }, ''],
}

describe('a job that cannot be admitted', () => {
  test.each(Object.entries(malformed))('%s: is kept with its error', async (_what, [data, pointer]) => {
    const id = unique('bad')
    await send(id, data)
    const { errors } = await rejected(id)
    expect(errors.map(({ pointer: at }) => at)).toContain(pointer)
    for (const { detail } of errors) expect(detail.length).toBeGreaterThan(5)
  })

  test('for its name, and for the session of another user', async () => {
    const [named, stolen] = [unique('bad'), unique('bad')]
    await send(named, good, 'walk')
    expect((await rejected(named)).errors).toEqual([
      { pointer: '', detail: 'jobs are named "run", not "walk"' },
    ])
    const session_id = unique('s')
    await runtime.of('default').submit({ ...good, session_id })
    await send(stolen, { ...good, user_id: 'u2', session_id })
    expect((await rejected(stolen)).errors[0]?.detail).toMatch(
      /belongs to another user; use that user's user_id/,
    )
  })

  test('belongs to its business where it names a known one, and to none otherwise', async () => {
    const known = unique('b')
    await runtime.of(known).submit({ ...good, delay_ms: 60_000 })
    const [a, b] = [unique('bad'), unique('bad')]
    await send(a, { business_id: known })
    await send(b, { business_id: unique('stranger') })
    expect((await rejected(a)).tenant).toBe(known)
    expect((await rejected(b)).tenant).toBeNull()
  })

  test('does no harm: the worker goes on with the next', async () => {
    const business = unique('b')
    await send(unique('job'), { ...good, business_id: business })
    const { id } = await runOf(business)
    expect((await runtime.of(business).wait(id, deadline())).status).toBe('completed')
    expect(await count(database, 'rejected_jobs')).toBeGreaterThan(20)
  })
})

describe('the id of a run that its producer chooses', () => {
  const taken = { errors: [{ pointer: '/run_id', detail: expect.stringMatching(/^is taken; make/) }] }
  const take = (id: string, data: object) => deliver(runtime.features.get(intakeRef).jobs, database, id, data)

  test('is the id of that run, also when the job comes again, before and after its key has expired', async () => {
    const [business, id, run_id] = [unique('b'), unique('job'), newRunId()]
    const data = { ...good, business_id: business, run_id, metadata: { order: 7 }, delay_ms: 60_000 }
    const first = await take(id, data)
    expect(first).toEqual({ run_id, status: 'queued' })
    expect(await take(id, data)).toEqual(first)
    await database.query('DELETE FROM idempotency WHERE tenant = $1', [business])
    expect(await take(id, data)).toEqual(first)
    expect(await take(id, { ...data, prompt: 'other' })).toEqual(taken)
    expect((await runtime.of(business).runs({ limit: 10 })).data).toHaveLength(1)
  })

  test('is refused where another run has it, of this business or of another, in the same words', async () => {
    const [business, other, run_id] = [unique('b'), unique('b'), newRunId()]
    const data = { ...good, business_id: business, run_id, delay_ms: 60_000 }
    await take(unique('job'), data)
    const [own, foreign] = [unique('job'), unique('job')]
    expect(await take(own, data)).toEqual(taken)
    expect(await take(foreign, { ...data, business_id: other })).toEqual(taken)
    expect((await rejection(own))?.errors).toEqual((await rejection(foreign))?.errors)
    expect((await runtime.of(other).runs({ limit: 10 })).data).toEqual([])
  })

  test('is refused twenty times at once but for one', async () => {
    const [business, run_id] = [unique('b'), newRunId()]
    const data = { ...good, business_id: business, run_id, delay_ms: 60_000 }
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => take(unique('job'), data)))
    expect(outcomes.filter((outcome) => 'run_id' in outcome)).toHaveLength(1)
    expect(await count(database, 'runs WHERE tenant = $1', [business])).toBe(1)
  })

  test('is part of what its key stands for: another id under it is a conflict, none is the same run', async () => {
    const [business, id] = [unique('b'), unique('job')]
    const data = { ...good, business_id: business, delay_ms: 60_000 }
    const first = await take(id, { ...data, run_id: newRunId() })
    expect(await take(id, data)).toEqual(first)
    expect(await take(id, { ...data, run_id: newRunId() })).toEqual({
      errors: [{ pointer: '', detail: expect.stringContaining('was used for another body') }],
    })
  })
})

const onRedis = describe.runIf(process.env.MASON_TEST_BACKEND === 'served')
onRedis('the result of a job, for any BullMQ client', () => {
  test('is the id and the status of its run, and of a refused job its errors', async () => {
    const settings = {
      connection: { url: backend.config.redisUrl ?? '' },
      prefix: backend.config.queuePrefix,
    }
    const [queue, events] = [new Queue('mason-runs', settings), new QueueEvents('mason-runs', settings)]
    try {
      await events.waitUntilReady()
      const run_id = newRunId()
      const [id, bad] = [unique('job'), unique('bad')]
      const result = new Promise((resolve) =>
        events.on('completed', ({ jobId, returnvalue }) => jobId === id && resolve(returnvalue)),
      )
      await queue.add('run', { ...good, business_id: unique('b'), run_id }, { jobId: id })
      expect(await result).toEqual({ run_id, status: 'queued' })
      expect(await queue.getJob(id)).toBeUndefined()

      const refused = await queue.add('run', { user_id: 'u1' }, { jobId: bad, attempts: 3 })
      const reason = await refused.waitUntilFinished(events, 30_000).catch((error: Error) => error.message)
      expect(JSON.parse(String(reason))).toEqual((await rejected(bad)).errors)
      expect(await refused.getState()).toBe('failed')
    } finally {
      await Promise.all([queue.close(), events.close()])
    }
  })
})

describe('the intake', () => {
  const kept = (id: string) => count(database, 'rejected_jobs WHERE job_id = $1', [id])

  test('ends its term while the database is away, and keeps nothing', async () => {
    const [id, error] = [unique('job'), unavailable()]
    await expect(deliver(failing(error), database, id, good)).rejects.toBe(error)
    expect(await kept(id)).toBe(0)
  })

  test('refuses a refused job again, though it could be admitted now, and judges another content on its own', async () => {
    const id = unique('job')
    const data = { ...good, tools: ['nothing'] }
    const errors = [{ pointer: '/tools/0', detail: 'no such tool' }]
    const unknownTool = failing(new MasonError('invalid_request', 'no such tool', { detail: { errors } }))
    expect(await deliver(unknownTool, database, id, data)).toEqual({ errors })
    expect(await deliver(openTestIntake(database), database, id, data)).toEqual({ errors })
    expect(
      await deliver(openTestIntake(database), database, id, { ...good, delay_ms: 600_000 }),
    ).toHaveProperty('run_id')
    expect(await deliver(unknownTool, database, id, { ...good, tools: ['neither'] })).toMatchObject({
      errors: expect.any(Array),
    })
    expect(await kept(id)).toBe(2)
  })

  test('keeps jobs whose id no text column can hold', async () => {
    const id = `${unique('bad')}\u0000`
    expect(await deliver(refuseAll(), database, id, good)).toHaveProperty('errors')
    expect((await rejected(id.replace('\u0000', '\ufffd'))).errors[0]?.detail).toContain('NUL')
    const long = unique('x').repeat(300)
    expect(await deliver(refuseAll(), database, long, good)).toHaveProperty('errors')
  })
})
