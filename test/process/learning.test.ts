import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ensureBusiness } from '../../src/accounts/businesses.ts'
import { type Database, queryOne } from '../../src/infra/database/database.ts'
import { type Backend, unique } from '../support/backend.ts'
import { type FakeModel, type FakeReply, startFakeModel } from '../support/fake-model/fake-model.ts'
import { lessonOf } from '../support/memory.ts'
import { createProcesses, openOwnServers, serversMissing, type WorkerProcess } from '../support/processes.ts'
import { count, openWithDatabase, until } from '../support/runs.ts'
import { say } from '../support/script.ts'
import { urlOf } from '../support/setup-served.ts'
import { deadline, fakeModels, type TestRuntime } from '../support/test-runtime.ts'
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
    await until('another has learned', async () => (await count(database, 'distillations')) === 0, 60_000)
  }
  const once = {
    memories: 1,
    sources: 1,
    profile: { name: 'Clara Jensen' },
    summary: 'Clara planned a dinner.',
    waiting: 0,
  }

  test('a learner that dies while the model answers: another asks again, and all is learned once', async () => {
    const user_id = unique('clara')
    const { worker, run } = await teach(user_id, { hold: true, text: lesson }, { text: lesson })
    await model.received(1, 'distill', deadline())
    worker.signal('SIGKILL')
    expect((await worker.exited).signal).toBe('SIGKILL')
    expect(await written(user_id, run.session_id)).toEqual(nothing)
    await takeOver(run.id)
    expect(await written(user_id, run.session_id)).toEqual(once)
    expect(model.requests('distill')).toHaveLength(2)
  })

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
      await until('it waits for the user', async () => (await count(database, waits)) === 1, 60_000)
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
