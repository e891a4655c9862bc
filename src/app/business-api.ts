import { ensureBusiness } from '../accounts/businesses.ts'
import { createQuotas, type Quotas } from '../accounts/quotas.ts'
import { streamRunEvents, waitForRun } from '../engine/events/event-stream.ts'
import type { Feed } from '../engine/events/feed.ts'
import {
  createPoller,
  createPollPermits,
  type EventScope,
  type PollPermits,
} from '../engine/events/polling.ts'
import { streamRunChanges } from '../engine/events/run-changes.ts'
import { type Admission, admitRetry, submitRoute } from '../engine/runs/admission.ts'
import { createAdmissions } from '../engine/runs/admission-batches.ts'
import type { JobAdmissions } from '../engine/runs/business-runs.ts'
import { answerInput } from '../engine/runs/input-answers.ts'
import { listInputRequests } from '../engine/runs/input-queries.ts'
import { createQueueCaps, type QueueCaps } from '../engine/runs/queue-caps.ts'
import { lastId, readActionRows, readRun } from '../engine/runs/run-queries.ts'
import { countRuns, searchRuns } from '../engine/runs/search-runs.ts'
import type { SecretAnswers } from '../engine/runs/secret-answers.ts'
import { cancelRun, type ReportRunEnd } from '../engine/runs/settlement.ts'
import type { CheckWebhookAddress } from '../engine/runs/webhook-address.ts'
import { type PromptParts, readActionPrompt } from '../engine/sessions/action-prompt.ts'
import { listActions, readAction } from '../engine/sessions/action-queries.ts'
import { forkSession } from '../engine/sessions/fork-session.ts'
import type { UnrepeatableWork } from '../engine/sessions/repeated-effects.ts'
import { admitRerun } from '../engine/sessions/rerun.ts'
import { listSessions, readSession, sessionExists } from '../engine/sessions/session-queries.ts'
import type { UserMemory } from '../engine/sessions/user-memory.ts'
import type { Spender } from '../features/core.ref.ts'
import { openBlob, readBlob } from '../files/blobs/blob-content.ts'
import { createUploads, findNamedFiles, type NamedFiles } from '../files/uploads.ts'
import { checkRequestNames } from '../graph/check-request.ts'
import type { Config } from '../infra/config/config.ts'
import { wakeRun } from '../infra/queue/queues.ts'
import { MasonError } from '../state/errors.ts'
import { type ActionRow, foldActions } from '../state/fold.ts'
import { inlineBlobs } from '../state/inline-blobs.ts'
import { openOnce } from '../state/open-once.ts'
import type { Models } from '../state/ports/models.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { RunEntry } from '../state/ports/tracer.ts'
import type { JobData } from '../state/run-request.ts'
import type { RunView } from '../state/run-view.ts'
import { emptyState, type RuntimeState } from '../state/runtime-state.ts'
import type { BusinessApi } from './api.ts'
import type { Drivers } from './open-drivers.ts'

/** What all businesses of a process share. */
type BusinessApiParts = PromptParts &
  Pick<Drivers, 'queues' | 'clock' | 'log' | 'tracer'> & {
    feed: Feed
    models: Models
    queueCaps: QueueCaps
    quotas: Quotas
    checkBudgets(spender: Spender): Promise<void>
    memory: UserMemory
    /** Shared by all businesses of this process. */
    pollPermits: PollPermits
    checkWebhookAddress: CheckWebhookAddress
    secretAnswers: SecretAnswers
    unrepeatable: UnrepeatableWork | null
    /** Is called for a run that a cancel ended at once. */
    onRunEnded: ReportRunEnd
  }

const retryRoute = 'POST /v1/runs/{id}/retry'
const rerunRoute = 'POST /v1/runs/{id}/rerun'

const readToken = (entry: RunEntry): string | null => (entry.by === 'http' && entry.token_id) || null

/** What precedes and what follows the admission of a run of one business, by whichever way it comes. */
const createSubmissions = (parts: BusinessApiParts, businessId: string) => {
  const { database, queues, feed, graph, models, queueCaps, quotas } = parts
  const uploads = createUploads(database, businessId, (bytes) => quotas.checkStorage(businessId, bytes))
  const ensureKnown = openOnce(() => ensureBusiness(database, businessId))
  const checkBudgets = (user_id: string, entry: RunEntry): Promise<void> =>
    parts.checkBudgets({ business_id: businessId, user_id, token_id: readToken(entry) })
  const submissions = {
    uploads,
    ensureKnown,
    checkBudgets,
    /** Throws for names of the request that are not there. */
    async checkNames(request: JobData): Promise<void> {
      checkRequestNames(request, graph, models)
      await ensureKnown()
    },
    /** Throws what refuses a new run; returns the files that it names. */
    async checkNew(request: JobData, entry: RunEntry): Promise<NamedFiles> {
      const named = await findNamedFiles(uploads, request)
      if (request.webhook_url !== undefined)
        await parts.checkWebhookAddress(businessId, request.webhook_url, 'webhook_url')
      await queueCaps.check(businessId)
      await checkBudgets(request.user_id, entry)
      // base64 has four characters for three bytes
      const characters = (request.files ?? []).reduce(
        (sum, file) => sum + (file.content_base64?.length ?? 0),
        0,
      )
      if (characters > 0) await quotas.checkStorage(businessId, characters * 0.75)
      return named
    },
    /** Tells followers, workers and the tracer of an admitted run. */
    announce(admission: Admission, entry: RunEntry, delayMs = 0): Admission {
      const { id, session_id, turn } = admission.run
      if (!admission.replayed) {
        feed.publishChange(businessId, session_id, 'admitted')
        if (delayMs === 0) wakeRun(queues, { tenant: businessId, run_id: id })
      }
      const accepted = { run_id: id, business_id: businessId, session_id, turn, replayed: admission.replayed }
      parts.tracer.accepted({ ...accepted, entry })
      return admission
    },
  }
  const ofQueue = () => ({ by: 'queue' as const, beganAtMs: Date.now() })
  const ofJobs: JobAdmissions = {
    async check(request) {
      await submissions.checkNames(request)
      return submissions.checkNew(request, ofQueue())
    },
    announce: (admission, { delay_ms }) => void submissions.announce(admission, ofQueue(), delay_ms),
  }
  return { ...submissions, ofJobs }
}

/** Everything that can be done with runs on behalf of one business. */
const createBusinessApi = (
  parts: BusinessApiParts,
  businessId: string,
  submissions: ReturnType<typeof createSubmissions>,
): BusinessApi => {
  const { database, queues, feed, graph, models, queueCaps } = parts
  const { uploads, ensureKnown, checkBudgets, announce } = submissions
  const admissions = createAdmissions(database, businessId)
  const poller = createPoller(database, businessId, parts.pollPermits)
  const queryAsBusiness = <T>(work: (sql: Sql) => Promise<T>): Promise<T> =>
    database.asBusiness(businessId, work, { pipelined: true })

  const readExistingRun = async (runId: string): Promise<RunView> => {
    const run = await poller.readRun(runId)
    if (run) return run
    throw new MasonError('not_found', `there is no run "${runId}"`)
  }

  /** The state with its large results in full, read through a run of its session. */
  const inlineBlobsOf = (runId: string, state: RuntimeState): Promise<RuntimeState> =>
    inlineBlobs(state, (hash) =>
      database.asBusiness(businessId, (sql) => readBlob(sql, { tenant: businessId, run_id: runId }, hash)),
    )

  const findScope = async (
    source: { run_id: string } | { session_id: string },
  ): Promise<EventScope | null> => {
    const scope = { business_id: businessId, ...source }
    if ('session_id' in scope)
      return (await queryAsBusiness((sql) => sessionExists(sql, businessId, scope.session_id))) ? scope : null
    const run = await poller.readRun(scope.run_id)
    return run && { ...scope, session_id: run.session_id }
  }

  return {
    async submit(request, key, entry = { by: 'call', beganAtMs: Date.now() }) {
      await submissions.checkNames(request)
      const idempotencyKey = key === undefined ? undefined : { route: submitRoute, key }
      const beforeNew = () => submissions.checkNew(request, entry)
      const admission = await admissions.admit(request, idempotencyKey, beforeNew, readToken(entry))
      return announce(admission, entry, request.delay_ms)
    },
    async retry(runId, key, entry = { by: 'call', beganAtMs: Date.now() }) {
      await queueCaps.check(businessId)
      const run = await poller.readRun(runId)
      if (run) await checkBudgets(run.user_id, entry)
      const idempotencyKey = key === undefined ? undefined : { route: retryRoute, key }
      const admission = await admitRetry(database, businessId, runId, idempotencyKey, readToken(entry))
      return announce(admission, entry)
    },
    async rerun(runId, options, key, entry = { by: 'call', beganAtMs: Date.now() }) {
      const { user_id } = await readExistingRun(runId)
      const { prompt = '', models: named } = options
      const admission = await admitRerun(database, businessId, runId, options, {
        ...(key !== undefined && { key: { route: rerunRoute, key } }),
        tokenId: readToken(entry),
        unrepeatable: parts.unrepeatable,
        skipLearning: parts.memory.skipLearning,
        async check() {
          checkRequestNames({ prompt, user_id, ...(named && { models: named }) }, graph, models)
          await queueCaps.check(businessId)
          await checkBudgets(user_id, entry)
        },
      })
      return announce(admission, entry)
    },
    files: {
      ...uploads,
      receive: async (...file) => {
        await ensureKnown()
        return uploads.receive(...file)
      },
      open: async (input) => {
        await ensureKnown()
        return uploads.open(input)
      },
    },
    run: (runId) => poller.readRun(runId),
    get memories() {
      return parts.memory.of(businessId)
    },
    runs: (filter) => searchRuns(database, businessId, filter),
    countRuns: (filter) => queryAsBusiness((sql) => countRuns(sql, businessId, filter)),
    session: (sessionId) => database.asBusiness(businessId, (sql) => readSession(sql, businessId, sessionId)),
    sessions: (filter) => database.asBusiness(businessId, (sql) => listSessions(sql, businessId, filter)),
    async actions(sessionId, filter) {
      const scope = { business_id: businessId, session_id: sessionId }
      return database.asBusiness(businessId, async (sql) =>
        (await sessionExists(sql, businessId, sessionId)) ? listActions(sql, scope, filter) : null,
      )
    },
    action: (sessionId, actionId) =>
      database.asBusiness(businessId, (sql) =>
        readAction(sql, { business_id: businessId, session_id: sessionId }, actionId),
      ),
    prompt: (sessionId, actionId, after = 0) =>
      readActionPrompt(parts, { business_id: businessId, session_id: sessionId }, actionId, after),
    async sessionState(sessionId, { action, inline }) {
      const rows = await database.asBusiness(businessId, (sql) =>
        readActionRows<ActionRow & { run_id: string }>(sql, businessId, sessionId, lastId, {
          ...(action !== undefined && { to: action }),
          columns: 'seq, turn, body, patch, run_id',
        }),
      )
      const last = rows.at(-1)
      if (action !== undefined && action !== (last?.seq ?? 0)) return null
      if (!last) return (await findScope({ session_id: sessionId })) && emptyState
      const state = foldActions(rows)
      return inline ? inlineBlobsOf(last.run_id, state) : state
    },
    fork: (sessionId, actionId) => forkSession(database, businessId, sessionId, actionId),
    async deleteSession(sessionId) {
      const deleted = await parts.memory.deleteSession(database, businessId, sessionId)
      feed.publishCancel(businessId, sessionId)
      return deleted
    },
    async wait(run, signal) {
      const { id, session_id } = typeof run === 'string' ? await readExistingRun(run) : run
      const source = { business_id: businessId, session_id, run_id: id }
      const ended = await waitForRun(poller, feed, source, { admittedNow: typeof run !== 'string' }, signal)
      return ended ?? readExistingRun(id)
    },
    exists: async (source) => (await findScope(source)) !== null,
    async state(runId, inline) {
      const rows = await database.asBusiness(businessId, async (sql) => {
        const run = await readRun(sql, businessId, runId)
        return run && readActionRows(sql, businessId, run.session_id, run.turn)
      })
      if (!rows) return null
      const state = foldActions(rows)
      return inline ? inlineBlobsOf(runId, state) : state
    },
    blob: (runId, hash) => openBlob(queryAsBusiness, { tenant: businessId, run_id: runId }, hash),
    async cancel(runId, reason) {
      const settled = await cancelRun(database, businessId, runId, reason ?? '')
      if (settled) parts.onRunEnded(settled)
      const run = await readExistingRun(runId)
      feed.publishCancel(businessId, run.session_id)
      feed.publishChange(businessId, run.session_id)
      return run
    },
    inputRequests: (filter) =>
      database.asBusiness(businessId, (sql) => listInputRequests(sql, businessId, filter)),
    async answer(runId, requestId, answer, key) {
      await answerInput(database, businessId, runId, requestId, answer, key, parts.secretAnswers)
      wakeRun(queues, { tenant: businessId, run_id: runId })
      const run = await readExistingRun(runId)
      feed.publishChange(businessId, run.session_id)
      return run
    },
    changes: (after, signal) => streamRunChanges(poller, feed, businessId, after, signal),
    async *events(source, after, signal) {
      const scope = await findScope(source)
      if (scope) return yield* streamRunEvents(poller, feed, scope, after, signal)
      const name = 'run_id' in source ? `run "${source.run_id}"` : `session "${source.session_id}"`
      throw new MasonError('not_found', `there is no ${name}`)
    },
  }
}

/** What can be done with runs on behalf of each business, made when it is first asked for. */
export const createBusinessApis = (
  { quotas: defaults }: Config,
  shared: Omit<BusinessApiParts, 'queueCaps' | 'quotas' | 'pollPermits'>,
) => {
  const { database, clock } = shared
  const quotas = createQuotas(database, defaults, clock)
  const queueCaps = createQueueCaps(database, clock, defaults.queuedRuns)
  const parts = { ...shared, quotas, queueCaps, pollPermits: createPollPermits() }
  const businesses = new Map<string, { api: BusinessApi; ofJobs: JobAdmissions }>()
  const open = (businessId: string) => {
    const known = businesses.get(businessId)
    if (known) return known
    const submissions = createSubmissions(parts, businessId)
    const opened = { api: createBusinessApi(parts, businessId, submissions), ofJobs: submissions.ofJobs }
    businesses.set(businessId, opened)
    return opened
  }
  return {
    of: (businessId: string): BusinessApi => open(businessId).api,
    /** How jobs of the public queue are admitted. */
    jobsOf: (businessId: string): JobAdmissions => open(businessId).ofJobs,
    countRequest: (businessId: string): Promise<void> => quotas.checkRequest(businessId),
  }
}
