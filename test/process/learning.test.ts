// asserts: invariants

import { tmpdir } from 'node:os'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ensureBusiness } from '../../src/accounts/businesses.ts'
import { createClient } from '../../src/client/index.ts'
import { type Database, queryOne } from '../../src/infra/database/database.ts'
import { type Backend, unique } from '../support/backend.ts'
import { type Running, startCli } from '../support/cli.ts'
import { askDoctor } from '../support/doctor.ts'
import { type FakeModel, type FakeReply, startFakeModel } from '../support/fake-model/fake-model.ts'
import { lessonOf } from '../support/memory.ts'
import { createProcesses, openOwnServers, serversMissing, type WorkerProcess } from '../support/processes.ts'
import { count, openWithDatabase, until } from '../support/runs.ts'
import { say } from '../support/script.ts'
import { urlOf } from '../support/setup-served.ts'
import { deadline, fakeModels, type TestRuntime } from '../support/test-runtime.ts'
import { testInAll } from '../support/tier.ts'
import { onServers } from './servers.ts'

const lesson = JSON.stringify({
  memories: [lessonOf('preference', 'I never eat meat', 'The user never eats meat.')],
  profile: [{ evidence: 'My name is Clara Jensen', stance: 'asserts', field: 'name', value: 'Clara Jensen' }],
  summary: 'Clara planned a dinner.',
})

describe.skipIf(serversMissing !== null)(onServers('a worker that is killed while it learns'), () => {
  const processes = createProcesses()
  let backend: Backend
  let model: FakeModel
  let runtime: TestRuntime
  let database: Database

  beforeAll(async () => {
    backend = await openOwnServers()
    model = await startFakeModel()
    const options = { models: fakeModels(model.baseUrl), worker: false }
    ;({ runtime, database } = await openWithDatabase(backend, options))
  })
  afterEach(async () => {
    await processes.end()
    model?.reset()
  })
  afterAll(async () => {
    await runtime?.close()
    await model?.close()
    await backend?.drop()
  })

  const startWorker = (): Promise<WorkerProcess> =>
    processes.start({
      config: backend.config,
      modelUrl: model.baseUrl,
    })
  /** A run that has ended and is just being learned from. */
  const teach = async (user_id: string, ...distill: FakeReply[]) => {
    say(model, { planner: [{ text: 'Lentils.' }], distill })
    const worker = await startWorker()
    const api = runtime.of('default')
    const prompt = 'My name is Clara Jensen. I never eat meat, so plan a dinner for four people.'
    const { run } = await api.submit({ user_id, prompt })
    expect((await api.wait(run.id, deadline())).answer).toBe('Lentils.')
    return { worker, run }
  }
  const written = async (user_id: string, session_id: string) => ({
    memories: await count(database, 'memories WHERE user_id = $1', [user_id]),
    sources: await count(database, 'memory_sources WHERE user_id = $1', [user_id]),
    profile: (
      await queryOne<{ profile: object }>(database, 'SELECT profile FROM users WHERE user_id = $1', [user_id])
    )?.profile,
    summary: (
      await queryOne<{ summary: string }>(database, 'SELECT summary FROM sessions WHERE session_id = $1', [
        session_id,
      ])
    )?.summary,
    waiting: await count(database, 'distillations WHERE tries = 1'),
  })
  const nothing = { memories: 0, sources: 0, profile: undefined, summary: '', waiting: 1 }
  /** Another one takes over, without the two minutes of the lease. */
  const takeOver = async (run_id: string): Promise<void> => {
    await database.query('UPDATE distillations SET due_at = clock_timestamp() WHERE run_id = $1', [run_id])
    await startWorker()
    await until('another has learned', async () => (await count(database, 'distillations')) === 0, 90_000)
  }
  const once = {
    memories: 1,
    sources: 1,
    profile: { name: 'Clara Jensen' },
    summary: 'Clara planned a dinner.',
    waiting: 0,
  }

  // one that dies later, below, has to be asked again as well
  testInAll(
    'a learner that dies while the model answers: another asks again, and all is learned once',
    async () => {
      const user_id = unique('clara')
      const { worker, run } = await teach(user_id, { hold: true, text: lesson }, { text: lesson })
      await model.received(1, 'distill', deadline())
      worker.signal('SIGKILL')
      expect((await worker.exited).signal).toBe('SIGKILL')
      expect(await written(user_id, run.session_id)).toEqual(nothing)
      await takeOver(run.id)
      expect(await written(user_id, run.session_id)).toEqual(once)
      expect(model.requests('distill')).toHaveLength(2)
    },
  )

  test('a learner that dies while it writes: its writes are rolled back, and another learns all of it once', async () => {
    const user_id = unique('clara')
    // a connection without time limits: in its transaction the worker has ended its claim and written the memory, and waits
    // for the user's row
    const holder = new pg.Client({ connectionString: urlOf(backend.config.queuePrefix) })
    await holder.connect()
    try {
      await ensureBusiness(database, 'default')
      await holder.query('BEGIN; SET LOCAL search_path = mason, public; SET LOCAL ROLE mason_worker')
      await holder.query(`INSERT INTO users (tenant, user_id) VALUES ('default', $1)`, [user_id])
      const { worker, run } = await teach(user_id, { text: lesson })
      const waits = `pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.locktype = 'transactionid' AND NOT l.granted AND a.datname = current_database()`
      await until('it waits for the user', async () => (await count(database, waits)) === 1, 90_000)
      worker.signal('SIGKILL')
      await worker.exited
      await holder.query('ROLLBACK')
      // waits until the server has noticed that no client is left to commit
      await takeOver(run.id)
      expect(await written(user_id, run.session_id)).toEqual(once)
      expect(model.requests('distill')).toHaveLength(2)
    } finally {
      await holder.end()
    }
  })
})

describe.skipIf(serversMissing !== null)(onServers('a server with MASON_LEARNING=off'), () => {
  const running: Running[] = []
  let backend: Backend
  let database: Database
  let env: Record<string, string>

  beforeAll(async () => {
    backend = await openOwnServers()
    database = await backend.openDatabase()
    const { config } = backend
    env = {
      DATABASE_URL: config.database.kind === 'postgres' ? config.database.url : '',
      REDIS_URL: process.env.TEST_REDIS_URL ?? '',
      MASON_QUEUE_PREFIX: config.queuePrefix,
      MASON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      ...{ MASON_AUTH: 'off', MASON_LEARNING: 'off', LOG_LEVEL: 'error', PORT: '0' },
    }
  })
  afterAll(async () => {
    for (const mason of running) mason.kill('SIGTERM')
    await Promise.all(running.map(({ ended }) => ended))
    await database?.close()
    await backend?.drop()
  })
  const start = (args: string[], settings = env) => {
    const mason = startCli(args, { cwd: tmpdir(), env: settings })
    running.push(mason)
    return mason
  }

  test('leaves ended runs to a memory worker, and the doctor warns while there is none', async () => {
    const [, url = ''] = await start(['serve']).says(/listens on (http:\S+)/)
    const { id: run_id } = await createClient({ url, token: 'none' }).submit({
      prompt: 'My name is Clara Jensen. What is 10% of 300?',
      user_id: 'clara',
    })
    await until('the run has ended', async () => (await count(database, 'distillations')) === 1)
    await database.query(`UPDATE distillations SET created_at = now() - interval '2 minutes'`)
    const { stdout, code } = await askDoctor(env)
    expect(stdout).toMatch(
      /warn +learning +ended runs are not learned from: 1, .*\n +-> start `.*memory-worker`/,
    )
    expect(code).toBe(0)
    const learner = start(['memory-worker'], { ...env, REDIS_URL: '' })
    await learner.says(/learns from ended runs/)
    await until('it is learned from', async () => (await count(database, 'distillations')) === 0)
    expect(
      await count(
        database,
        `sessions s JOIN runs r USING (session_id) WHERE run_id = '${run_id}' AND s.summary <> ''`,
      ),
    ).toBe(1)
    expect((await askDoctor(env)).stdout).toContain('ended runs are learned from in time')
  })
})
