import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { settleRun } from '../../src/engine/runs/settlement.ts'
import type { Database } from '../../src/infra/database/database.ts'
import type { RunEvent, RunView } from '../../src/state/run-view.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import type { Backend } from '../support/backend.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'
import { type GateServer, startGate } from '../support/gate-server.ts'
import { checkInvariants, invariant } from '../support/invariants.ts'
import { createProcesses, openOwnServers, serversMissing, type WorkerProcess } from '../support/processes.ts'
import { count, endLease, openWithDatabase, until } from '../support/runs.ts'
import { deadline, fakeModels, type TestRuntime } from '../support/test-runtime.ts'
import type { WorkerTask } from '../support/worker-process.ts'

/** The title of tests that need servers; it says why they are skipped. */
export const onServers = (text: string): string =>
  serversMissing ? `${text} (skipped: ${serversMissing})` : text

/** What these tests share: own servers, a fake model, a gate, a runtime without a worker that submits and follows. */
export type World = {
  model: FakeModel
  gate: GateServer
  api: ReturnType<TestRuntime['of']>
  admin: TestRuntime['admin']
  features: TestRuntime['features']
  graph: TestRuntime['graph']
  /** `leaseMs`: that of its runs, in place of the world's. */
  startWorker(
    options?: Pick<WorkerTask, 'concurrency' | 'dialect' | 'diesAfter' | 'diesInBulkAt'> & {
      leaseMs?: number
    },
  ): Promise<WorkerProcess>
  submit(prompt: string): Promise<string>
  /** As if the worker of a list of runs had been silent for longer than its lease. */
  lapseBulk(): Promise<void>
  /** Runs that have failed before a worker took them. */
  submitFailed(count: number): Promise<string[]>
  /** Follows a run's events from its start to its end, as a client does. */
  follow(runId: string): {
    events: RunEvent[]
    ended: Promise<RunEvent[]>
    acted(node: string, call?: number): Promise<void>
  }
  /** As if the lease of a run whose worker is dead had expired, and another worker had noticed. */
  lapse(runId: string): Promise<void>
  /** The same of all runs that have not ended. */
  lapseAll(): Promise<void>
  /** Ends the waits for a job. */
  endWait(ref: string): Promise<void>
  /** As if the time had passed after which another worker sends a webhook again. */
  lapseWebhooks(): Promise<void>
  /** Waits until the lease of a run has run out by itself; then the same. */
  lapsed(runId: string): Promise<void>
  /** Waits for the end and checks all that must hold of every run. */
  finish(runId: string): Promise<{ run: RunView; state: RuntimeState; nodes: string[] }>
}

/**
 * Opens the world for one test file, with this lease in milliseconds; ends every process after each test. The lease is so
 * long that no worker loses it for a machine that stalls; a test says itself when one has run out.
 */
export const useWorld = (leaseMs = 30_000): World => {
  const world = {} as World
  const processes = createProcesses()
  /** Workers of a test that are as any other one and were left alone, the latest of which outlives it: a start is a second of computing. */
  const untouched = new Set<WorkerProcess>()
  let idle: WorkerProcess | undefined
  let backend: Backend
  let runtime: TestRuntime
  let database: Database

  beforeAll(async () => {
    if (serversMissing) return
    backend = await openOwnServers()
    world.model = await startFakeModel()
    world.gate = await startGate()
    const options = { models: fakeModels(world.model.baseUrl), worker: false }
    ;({ runtime, database } = await openWithDatabase(backend, options))
    world.api = runtime.of('default')
    world.admin = runtime.admin
    world.features = runtime.features
    world.graph = runtime.graph
  })
  afterEach(async () => {
    idle = [...untouched].at(-1)
    untouched.clear()
    await processes.end(idle)
    world.model?.reset()
    world.gate?.reset()
  })
  afterAll(async () => {
    await processes.end()
    await runtime?.close()
    await Promise.all([world.model?.close(), world.gate?.close()])
    await backend?.drop()
  })

  /** For a test whose first step is not the start of a worker like that one. */
  const endIdle = async (): Promise<void> => {
    if (idle) await processes.end()
    idle = undefined
  }
  world.startWorker = async (options) => {
    if (options) await endIdle()
    const { leaseMs: ownLeaseMs = leaseMs, ...more } = options ?? {}
    const config = { ...backend.config, leaseMs: ownLeaseMs }
    const worker = idle ?? (await processes.start({ config, modelUrl: world.model.baseUrl, ...more }))
    idle = undefined
    if (options) return worker
    worker.lines.length = 0
    untouched.add(worker)
    void worker.exited.then(() => untouched.delete(worker))
    const signal = (name: NodeJS.Signals): void => {
      untouched.delete(worker)
      worker.signal(name)
    }
    return { ...worker, signal }
  }
  world.submit = async (prompt) => {
    await endIdle()
    return (await world.api.submit({ prompt, user_id: 'u1' })).run.id
  }
  world.lapseBulk = async () => {
    await database.query('UPDATE bulk_jobs SET due_at = clock_timestamp()')
  }
  world.submitFailed = async (runs) => {
    const ids: string[] = []
    for (let nth = 0; nth < runs; nth++) {
      const { run } = await world.api.submit({ prompt: `bulk ${nth}`, user_id: 'u1', delay_ms: 3_600_000 })
      await database.asBusiness('default', (sql) =>
        settleRun(sql, 'default', run.id, {
          ...{ status: 'failed', reason: 'poison', error: { code: 'poison', message: 'x' } },
        }),
      )
      ids.push(run.id)
    }
    return ids
  }
  world.follow = (runId) => follow(world.api, runId)
  const ring = (runId: string) =>
    database.query(`INSERT INTO outbox (tenant, run_id) VALUES ('default', $1)`, [runId])
  world.lapse = async (runId) => {
    await endLease(database, runId)
    await ring(runId)
  }
  world.lapseAll = async () => {
    const { rows } = await database.query<{ run_id: string }>(
      `SELECT run_id FROM runs WHERE status = 'running'`,
    )
    for (const { run_id } of rows) await world.lapse(run_id)
  }
  world.endWait = async (ref) => {
    await database.query(`SELECT end_wait('default', 'job', $1, '{"status":"succeeded"}')`, [ref])
  }
  world.lapseWebhooks = async () => {
    await database.query(`UPDATE webhook_deliveries SET due_at = clock_timestamp() WHERE status = 'sending'`)
  }
  world.lapsed = async (runId) => {
    // another worker may have taken the run before the first look
    const over = 'runs WHERE run_id = $1 AND (epoch > 1 OR lease_until <= clock_timestamp())'
    await until('its lease has run out', () => count(database, over, [runId]))
    await ring(runId)
  }
  world.finish = async (runId) => {
    const run = await world.api.wait(runId, deadline(110_000))
    const state = await runtime.stateOf(runId)
    checkInvariants(state)
    return { run, state, nodes: (state.action_history.at(-1) ?? []).map((action) => action.node) }
  }
  return world
}

const follow = (api: World['api'], runId: string): ReturnType<World['follow']> => {
  const events: RunEvent[] = []
  const waiting = new Set<() => void>()
  const collect = async (): Promise<RunEvent[]> => {
    for await (const event of api.events({ run_id: runId }, 0, deadline(90_000))) {
      events.push(event)
      for (const look of waiting) look()
    }
    return events
  }
  const isThere = (node: string, call: number | undefined): boolean =>
    events.some(
      (event) =>
        event.event === 'action' &&
        event.data.node === node &&
        (call === undefined || (event.data.result.call as { index?: number } | undefined)?.index === call),
    )
  return {
    events,
    ended: collect(),
    acted: (node, call) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!isThere(node, call)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
  }
}

/** Every action once, in order, and `done` last. */
export const expectWhole = (events: readonly RunEvent[]): void => {
  const ids = events.flatMap((event) => (event.event === 'action' ? [event.id] : []))
  invariant(() => expect(ids).toEqual(ids.map((_, at) => at + 1)))
  expect(events.at(-1)?.event).toBe('done')
}
