import type { Graph } from './graph/build.ts'
import { checkRequest } from './graph/check-request.ts'
import { type Database, one } from './infra/database/database.ts'
import type { Feed } from './infra/events/feed.ts'
import { createLooks, type EventSource, type LookPlaces } from './infra/events/looks.ts'
import { streamEvents, waitForRun } from './infra/events/stream.ts'
import { createMemoriesApi } from './infra/memory/api.ts'
import type { Embedder } from './infra/memory/embeddings.ts'
import type { Queues } from './infra/queue/queue.ts'
import { createAdmissions } from './infra/runs/admissions.ts'
import { ensureBusiness } from './infra/runs/admit.ts'
import { answerInput } from './infra/runs/answer.ts'
import { cancelRun } from './infra/runs/cancel.ts'
import type { QueueCaps } from './infra/runs/queue-caps.ts'
import { listRuns, readRun } from './infra/runs/read.ts'
import { readBlob, readRows } from './infra/runs/run-log.ts'
import { deleteSession } from './infra/sessions/delete.ts'
import { forkSession } from './infra/sessions/fork.ts'
import { listSessions, readSession, sessionExists } from './infra/sessions/views.ts'
import type { BusinessApi } from './runtime-api.ts'
import { MasonError } from './state/errors.ts'
import { fold } from './state/fold.ts'
import { inlineBlobs } from './state/inline-blobs.ts'
import type { Log, Models, Sql } from './state/ports.ts'
import type { RunView } from './state/run-view.ts'
import type { Tracer } from './state/trace.ts'

export type ApiParts = {
  database: Database
  queues: Queues
  feed: Feed
  graph: Graph
  models: Models
  caps: QueueCaps
  embedder: Embedder
  /** Shared by all businesses of this process. */
  lookPlaces: LookPlaces
  log: Log
  tracer: Tracer
}

const route = 'POST /v1/runs'

/** Everything that can be done with runs on behalf of one business. */
export const createBusinessApi = (parts: ApiParts, tenant: string): BusinessApi => {
  const { database, queues, feed, graph, models, caps } = parts
  const admissions = createAdmissions(database, tenant)
  const looks = createLooks(database, tenant, parts.lookPlaces)
  let known: Promise<void> | null = null
  const ensured = (): Promise<void> => {
    known ??= ensureBusiness(database, tenant).catch((error: unknown) => {
      known = null
      throw error
    })
    return known
  }

  const ask = <T>(work: (sql: Sql) => Promise<T>): Promise<T> =>
    database.asBusiness(tenant, work, { atOnce: true })

  const found = async (runId: string): Promise<RunView> => {
    const run = await looks.run(runId)
    if (run) return run
    throw new MasonError('not_found', `there is no run "${runId}"`)
  }

  const ofRun = async (runId: string): Promise<EventSource> => {
    const { session_id } = await found(runId)
    return { tenant, session_id, run_id: runId }
  }

  const hasSession = (sessionId: string): Promise<boolean> =>
    ask((sql) => sessionExists(sql, tenant, sessionId))

  const ofSession = async (sessionId: string): Promise<EventSource> => {
    if (await hasSession(sessionId)) return { tenant, session_id: sessionId }
    throw new MasonError('not_found', `there is no session "${sessionId}"`)
  }

  return {
    async submit(request, key, entry = { by: 'call', beganAtMs: Date.now() }) {
      checkRequest(request, graph, models)
      await ensured()
      const named = key === undefined ? undefined : { route, key }
      const admission = await admissions.admit(request, named, () => caps.check(tenant))
      if (!admission.replayed) {
        feed.changed(tenant, admission.run.session_id, 'admitted')
        if (!request.delay_ms) ring(queues, tenant, admission.run.id)
      }
      const { id, session_id, turn } = admission.run
      const accepted = { run_id: id, business_id: tenant, session_id, turn, replayed: admission.replayed }
      parts.tracer.accepted({ ...accepted, entry })
      return admission
    },
    run: (runId) => looks.run(runId),
    memories: createMemoriesApi(parts, tenant),
    runs: (filter) => ask((sql) => listRuns(sql, tenant, filter)),
    session: (sessionId) => database.asBusiness(tenant, (sql) => readSession(sql, tenant, sessionId)),
    sessions: (filter) => database.asBusiness(tenant, (sql) => listSessions(sql, tenant, filter)),
    fork: (sessionId, actionId) => forkSession(database, tenant, sessionId, actionId),
    async deleteSession(sessionId) {
      const deleted = await deleteSession(database, tenant, sessionId)
      feed.cancelling(tenant, sessionId)
      return deleted
    },
    async wait(run, signal) {
      const { id, session_id } = typeof run === 'string' ? await found(run) : run
      const source = { tenant, session_id, run_id: id }
      const ended = await waitForRun(looks, feed, source, { admittedNow: typeof run !== 'string' }, signal)
      return ended ?? found(id)
    },
    async exists(source) {
      return 'run_id' in source ? (await looks.run(source.run_id)) !== null : hasSession(source.session_id)
    },
    async state(runId, inline) {
      const rows = await database.asBusiness(tenant, async (sql) => {
        const run = await readRun(sql, tenant, runId)
        return run && (await readRows(sql, tenant, run.session_id, run.turn))
      })
      if (!rows) return null
      const state = fold(rows)
      return inline
        ? inlineBlobs(state, (hash) => database.asBusiness(tenant, (sql) => readBlob(sql, tenant, hash)))
        : state
    },
    blob: async (runId, hash) => {
      if (!/^[0-9a-f]{64}$/.test(hash)) return null
      return database.asBusiness(tenant, async (sql) => {
        // a run shows the blobs its state mentions, and no others; told by the text, since json operators refuse some documents
        const mentioned = await one(
          sql,
          `SELECT 1 AS there FROM runs r WHERE r.tenant = $1 AND r.run_id = $2 AND (
             EXISTS (SELECT FROM actions a WHERE a.tenant = $1 AND a.session_id = r.session_id AND a.turn <= r.turn
               AND (strpos(a.body::text, $3) > 0 OR strpos(a.patch::text, $3) > 0 OR strpos(a.patch::text, $4) > 0))
             OR EXISTS (SELECT FROM run_requests q WHERE q.tenant = $1 AND q.run_id = $2 AND strpos(q.request::text, $4) > 0))`,
          [tenant, runId, `"blob":"${hash}"`, `"local_path":"blob:${hash}"`],
        )
        return mentioned ? readBlob(sql, tenant, hash) : null
      })
    },
    async cancel(runId, reason) {
      await cancelRun(database, tenant, runId, reason ?? '')
      const run = await found(runId)
      feed.cancelling(tenant, run.session_id)
      feed.changed(tenant, run.session_id)
      return run
    },
    async answer(runId, requestId, answer) {
      await answerInput(database, tenant, runId, requestId, answer)
      ring(queues, tenant, runId)
      const run = await found(runId)
      feed.changed(tenant, run.session_id)
      return run
    },
    async *events(source, after, signal) {
      const of = 'run_id' in source ? await ofRun(source.run_id) : await ofSession(source.session_id)
      yield* streamEvents(looks, feed, of, after, signal)
    },
  }
}

/** Not awaited: the run is durable already, and the outbox rings for what is missed here. */
const ring = (queues: Queues, tenant: string, runId: string): void => {
  queues.ring({ run_id: runId, business_id: tenant }).catch(() => {})
}
