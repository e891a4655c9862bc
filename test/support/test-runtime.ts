import { expect } from 'vitest'
import type { BusinessApi, Runtime } from '../../src/app/api.ts'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { RuntimeOptions } from '../../src/app/runtime-options.ts'
import type { RunExit } from '../../src/graph/execute.ts'
import type { LiveRun } from '../../src/graph/live-run.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { DialectName, Models } from '../../src/state/ports/models.ts'
import type { RunRequest } from '../../src/state/run-request.ts'
import type { RunEvent, RunView } from '../../src/state/run-view.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import type { Backend } from './backend.ts'
import { checkInvariants } from './invariants.ts'
import { openModels } from './one-server.ts'
import { hookSources } from './script-flags.ts'

/** A runtime with a worker, on a backend; everything it let go of is compared with what the database holds. */
export type TestRuntime = Runtime & {
  held: { run: LiveRun; left: RunExit; state: RuntimeState }[]
  /** Submits and follows a run until it ends or waits; checks the invariants on the way. */
  complete(
    request: Partial<RunRequest> & { prompt: string },
    options?: { business?: string; key?: string },
  ): Promise<RunView>
  stateOf(runId: string, business?: string): Promise<RuntimeState>
}

/** What an operator has to settle for a run, once it waits for that. */
export const waitForOperator = async (
  runtime: Pick<Runtime, 'of'>,
  runId: string,
  business = 'default',
): Promise<NonNullable<RunView['operator_request']>> => {
  const read = async () => (await runtime.of(business).run(runId))?.operator_request
  await expect.poll(read).toBeTruthy()
  return (await read()) as NonNullable<RunView['operator_request']>
}

export const deadline = (ms = 120_000): AbortSignal => AbortSignal.timeout(ms)

/** Models that talk to a fake server on loopback through the real client, with clocks that a busy machine can keep. */
export const fakeModels = (
  baseUrl: string,
  options: { totalMs?: number; dialect?: DialectName } = {},
): Models =>
  openModels({
    baseUrl,
    apiKey: 'test',
    model: 'fake',
    ...(options.dialect && { dialect: options.dialect }),
    clocks: { firstByteMs: 20_000, idleMs: 20_000, totalMs: options.totalMs ?? 30_000 },
    retry: { attempts: 3, baseMs: 10, maxMs: 50 },
    clock: systemClock,
  })

export const openTestRuntime = async (
  backend: Backend,
  options: RuntimeOptions & {
    leaseMs?: number
    worker?: boolean
    concurrency?: number
    maxRuns?: number
    filesRoot?: string
  } = {},
): Promise<TestRuntime> => {
  if (options.toolFolders) hookSources()
  const held: TestRuntime['held'] = []
  const config = {
    ...backend.config,
    ...(options.leaseMs && { leaseMs: options.leaseMs }),
    ...(options.filesRoot && { filesRoot: options.filesRoot }),
  }
  const runtime = await openRuntime(config, {
    ...(backend.loadDataDir && { loadDataDir: backend.loadDataDir }),
    memory: 'off',
    onRunReleased: (run, left) => held.push({ run, left, state: run.state }),
    ...options,
  })
  if (options.worker !== false) {
    const { concurrency = 4, maxRuns } = options
    await runtime.startWorker({ concurrency, ...(maxRuns && { maxRuns }) })
  }
  const stateOf = async (runId: string, business = 'default'): Promise<RuntimeState> => {
    const state = await runtime.of(business).state(runId, false)
    if (!state) throw new Error(`there is no run ${runId}`)
    return state
  }
  return {
    ...runtime,
    held,
    stateOf,
    async complete(request, { business = 'default', key } = {}) {
      const api = runtime.of(business)
      const { run } = await api.submit({ user_id: 'u1', ...request }, key)
      const view = await api.wait(run.id, deadline())
      const state = await stateOf(run.id, business)
      const ended = view.status !== 'input_required'
      checkInvariants(state, { ended })
      const last = held.findLast((entry) => entry.run.claimed.run_id === run.id)
      if (ended && last?.left === 'ended') expect(state).toEqual(last.state)
      return view
    },
  }
}

/** The events of a run from `after` to its end. */
export const eventsOf = async (api: BusinessApi, runId: string, after = 0): Promise<RunEvent[]> => {
  const events: RunEvent[] = []
  for await (const event of api.events({ run_id: runId }, after, deadline())) events.push(event)
  return events
}

export const nodesOf = (state: RuntimeState, turn = -1): string[] =>
  (state.action_history.at(turn) ?? []).map((action) => action.node)
