import { Readable } from 'node:stream'
import type { BusinessApi, Runtime } from '../../src/app/api.ts'
import type { AuditEntry } from '../../src/app/audited-database.ts'
import { featureSources } from '../../src/app/features.generated.ts'
import {
  budgetCheckRef,
  businessRunsRef,
  graphRef,
  metricsRef,
  modelGatewayRef,
} from '../../src/features/core.ref.ts'
import { addFeatureRoutes, findService } from '../../src/features/load-features.ts'
import type { HealthReport } from '../../src/infra/telemetry/health-report.ts'
import { type CreateMetrics, noMetrics } from '../../src/infra/telemetry/metrics.ts'
import type { ModelGateway } from '../../src/models/ports/call-ports.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { RunStatus, RunView, SessionView } from '../../src/state/run-view.ts'
import { emptyState, type Json } from '../../src/state/runtime-state.ts'
import { createStream, type FakeStream } from './fake-stream.ts'

/** A runtime without a database, for tests of HTTP alone: it keeps runs in memory, works on none and notes every call. */
export type FakeRuntime = {
  runtime: Runtime
  tokens: Map<string, { business_id: string; roles: string[] }>
  health: HealthReport
  /** Every call: business, method, arguments. */
  calls: [business: string, method: string, ...args: unknown[]][]
  /** From now on this method throws this; undefined restores it. */
  failing: Map<keyof BusinessApi | 'stats' | 'health' | 'authenticate', Error>
  /** While set, submitting waits for it. */
  gate: Promise<void> | null
  run(id: string): RunView
  /** Sets a run's status and wakes who waits for it. */
  settle(id: string, status: RunStatus): void
  /** Every stream asked for, the latest last. */
  streams: FakeStream[]
  blobs: Map<string, Uint8Array>
  /** What the routes of features get, by the ids of handles. */
  services: Record<string, unknown>
  /** The requests whose changes are logged. */
  audited: AuditEntry[]
}

const createMetrics: CreateMetrics = (await findService(featureSources, metricsRef)) ?? (() => noMetrics)

const noUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
const someTime = '2026-01-02T03:04:05.678Z'

const newRun = (id: string, session_id: string, metadata: Record<string, Json>): RunView => ({
  id,
  session_id,
  business_id: 'default',
  user_id: 'u1',
  turn: 1,
  prompt: 'p',
  status: 'queued',
  finish_reason: null,
  answer: null,
  output_structure: [],
  output_errors: [],
  todos: { pending: 0, processing: 0, completed: 0, failed: 0 },
  open_todos: [],
  usage: noUsage,
  error: null,
  input_request: null,
  consent_request: null,
  operator_request: null,
  retry_at: null,
  retry_reason: null,
  retry_of: null,
  metadata,
  created_at: someTime,
  started_at: null,
  ended_at: null,
})

const sessionOf = (id: string, runs: RunView[]): SessionView => ({
  id,
  user_id: 'u1',
  created_at: someTime,
  updated_at: someTime,
  turns: runs.map((run) => ({
    turn: run.turn,
    run_id: run.id,
    status: run.status,
    prompt: 'p',
    goal: '',
    answer: null,
    usage: noUsage,
  })),
})

async function* nothing(): AsyncGenerator<never> {
  yield* []
}

export const createFakeRuntime = (): FakeRuntime => {
  const runs = new Map<string, { business: string; view: RunView }>()
  const keys = new Map<string, { body: string; id: string }>()
  const waiting = new Map<string, (() => void)[]>()
  const services: Record<string, unknown> = {
    [modelGatewayRef.id]: {
      ask: (...args: Parameters<ModelGateway['ask']>) => fake.runtime.modelService.ask(...args),
      list: (...args: Parameters<ModelGateway['list']>) => fake.runtime.modelService.list(...args),
    },
    [budgetCheckRef.id]: async () => undefined,
    [businessRunsRef.id]: (business: string) => fake.runtime.of(business),
    [graphRef.id]: () => fake.runtime.graph,
  }
  const fake: FakeRuntime = {
    services,
    tokens: new Map(),
    health: { ok: true, checks: { database: { ok: true, ms: 1 } } },
    calls: [],
    failing: new Map(),
    gate: null,
    streams: [],
    blobs: new Map(),
    audited: [],
    run: (id) => runs.get(id)?.view as RunView,
    settle(id, status) {
      fake.run(id).status = status
      for (const wake of waiting.get(id) ?? []) wake()
    },
    runtime: null as unknown as Runtime,
  }
  const failIf = (method: keyof BusinessApi | 'stats' | 'health' | 'authenticate') => {
    const error = fake.failing.get(method)
    if (error) throw error
  }

  const of = (business: string): BusinessApi => {
    const note = (method: keyof BusinessApi, ...args: unknown[]) => {
      fake.calls.push([business, method, ...args])
      failIf(method)
    }
    const find = (id: string): RunView | null => {
      const found = runs.get(id)
      return found?.business === business ? found.view : null
    }
    const need = (id: string): RunView => {
      const view = find(id)
      if (!view) throw new MasonError('not_found', `there is no run "${id}"`)
      return view
    }
    const inSession = (id: string): RunView[] =>
      [...runs.values()]
        .filter((run) => run.business === business && run.view.session_id === id)
        .map((run) => run.view)

    return {
      inputRequests: async () => ({ data: [], next_cursor: null }),
      actions: async () => null,
      prompt: async () => null,
      action: async () => null,
      sessionState: async () => null,
      retry: () => Promise.reject(new MasonError('run_not_failed', 'no run has failed here')),
      rerun: () => Promise.reject(new MasonError('not_found', 'no run has ended here')),
      async submit(request, key) {
        note('submit', request, key)
        await fake.gate
        const body = JSON.stringify(request)
        const earlier = key === undefined ? undefined : keys.get(`${business} ${key}`)
        if (earlier && earlier.body !== body)
          throw new MasonError('idempotency_conflict', 'the key was used for another body')
        const id = earlier?.id ?? `run_${runs.size + 1}`
        if (!earlier) {
          runs.set(id, {
            business,
            view: newRun(id, request.session_id ?? `ses_${id}`, request.metadata ?? {}),
          })
          if (key !== undefined) keys.set(`${business} ${key}`, { body, id })
        }
        const { session_id, turn, status } = need(id)
        return { run: { id, session_id, turn, status }, replayed: earlier !== undefined }
      },
      async wait(run, signal) {
        const id = typeof run === 'string' ? run : run.id
        note('wait', id)
        const ended: RunStatus[] = ['completed', 'failed', 'cancelled', 'input_required']
        while (!ended.includes(need(id).status))
          await new Promise<void>((resolve, reject) => {
            signal.throwIfAborted()
            signal.addEventListener('abort', () => reject(signal.reason), { once: true })
            waiting.set(id, [...(waiting.get(id) ?? []), resolve])
          }).catch((error: unknown) => {
            fake.calls.push([business, 'wait', id, 'aborted'])
            throw error
          })
        return need(id)
      },
      async exists(source) {
        note('exists', source)
        return 'run_id' in source ? find(source.run_id) !== null : inSession(source.session_id).length > 0
      },
      async run(id) {
        note('run', id)
        return find(id)
      },
      countRuns: async () => 0,
      async runs(filter) {
        note('runs', filter)
        return {
          data: [...runs.values()].filter((run) => run.business === business).map((run) => run.view),
          next_cursor: 'more',
        }
      },
      async state(id, inline) {
        note('state', id, inline)
        return find(id) && emptyState
      },
      async blob(id, sha256) {
        note('blob', id, sha256)
        const bytes = find(id) && fake.blobs.get(sha256)
        return bytes ? { bytes: bytes.length, chunks: Readable.from([bytes]) } : null
      },
      files: {
        receive: async (input) => {
          note('files', 'receive', input)
          throw new MasonError('payload_too_large', 'nothing is stored here')
        },
        open: async (input) => {
          note('files', 'open', input)
          throw new MasonError('payload_too_large', 'nothing is stored here')
        },
        append: async (id) => {
          note('files', 'append', id)
          throw new MasonError('not_found', `there is no file "${id}"`)
        },
        get: async () => null,
        renew: async () => null,
        remove: async () => false,
      },
      async cancel(id, reason) {
        note('cancel', id, reason)
        const run = need(id)
        if (run.status === 'completed' || run.status === 'failed')
          throw new MasonError('run_ended', `run "${id}" has ${run.status}`)
        fake.settle(id, 'cancelled')
        return run
      },
      async answer(id, requestId, answer) {
        note('answer', id, requestId, answer)
        return need(id)
      },
      memories: {
        list: async (filter) => {
          note('memories', 'list', filter)
          return { data: [], next_cursor: null }
        },
        search: async (search) => {
          note('memories', 'search', search)
          return []
        },
        export: (userId) => {
          note('memories', 'export', userId)
          return nothing()
        },
        summaries: (userId) => {
          note('memories', 'summaries', userId)
          return nothing()
        },
        profile: async (userId) => {
          note('memories', 'profile', userId)
          return []
        },
        forget: async (id) => {
          note('memories', 'forget', id)
          return false
        },
        async forgetAll(userId) {
          note('memories', 'forget all', userId)
        },
      },
      async session(id) {
        note('session', id)
        const found = inSession(id)
        return found.length === 0 ? null : sessionOf(id, found)
      },
      async sessions(filter) {
        note('sessions', filter)
        const ids = new Set(
          [...runs.values()].filter((run) => run.business === business).map((run) => run.view.session_id),
        )
        return { data: [...ids].map((id) => sessionOf(id, inSession(id))), next_cursor: null }
      },
      async deleteSession(id) {
        note('deleteSession', id)
        const found = inSession(id)
        for (const run of found) runs.delete(run.id)
        return found.length > 0
      },
      async fork(id, actionId) {
        note('fork', id, actionId)
        return inSession(id).length === 0 ? null : sessionOf('ses_fork', [])
      },
      changes: () => nothing(),
      events(source, after, signal) {
        note('events', source, after)
        const { stream, events } = createStream(source, after, signal)
        fake.streams.push(stream)
        return events
      },
    }
  }

  fake.runtime = {
    of,
    authenticateOperator: async () => null,
    async authenticate(token) {
      failIf('authenticate')
      return fake.tokens.get(token) ?? null
    },
    countRequest: async () => undefined,
    startPayments: async () => {},
    async health() {
      failIf('health')
      return fake.health
    },
    metrics: createMetrics(async () => {
      failIf('stats')
      const waiting = { ready: 7, oldest_ready_s: 8.5, unlearned: 0, oldest_unlearned_s: 0 }
      return { queued: 3, running: 2, input_required: 1, workers: 4, outbox: 5, ...waiting }
    }),
    features: {
      get: () => ({}) as never,
      addRoutes: (app, server) => addFeatureRoutes(featureSources, app, server, (id) => services[id] ?? {}),
    },
    publicOrigin: 'http://localhost:8080',
    admin: {
      ...{ tokens: {}, users: {} },
      audit: {
        run<T>(entry: AuditEntry, work: () => T): T {
          fake.audited.push(entry)
          return work()
        },
      },
    } as unknown as Runtime['admin'],
    graph: null as unknown as Runtime['graph'],
    models: null as unknown as Runtime['models'],
    modelService: null as unknown as Runtime['modelService'],
    startWorker: async () => undefined,
    startMemoryWork: () => undefined,
    close: async () => undefined,
  }
  return fake
}
