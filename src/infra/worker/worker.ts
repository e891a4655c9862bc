import type { Graph } from '../../graph/build.ts'
import { executeRun, failure, type Left } from '../../graph/execute.ts'
import { LiveRun } from '../../graph/live-run.ts'
import { outcomeOf } from '../../graph/visit.ts'
import { MasonError } from '../../state/errors.ts'
import type { Clock, Log, Models, Sql } from '../../state/ports.ts'
import type { Scenarios } from '../../state/registry/scenario.ts'
import { emptyState } from '../../state/runtime-state.ts'
import { Stopped } from '../../state/stopped.ts'
import { noTracer, type RunFacts, type RunWork, type Tracer } from '../../state/trace.ts'
import type { Database } from '../database/database.ts'
import type { Feed } from '../events/feed.ts'
import type { FileService } from '../files/run-files.ts'
import { newAttemptId } from '../ids.ts'
import type { Embedder } from '../memory/embeddings.ts'
import { createMemories } from '../memory/for-run.ts'
import type { Caller } from '../models/ports.ts'
import { settlesWithin } from '../queue/deadline.ts'
import { watchActing } from '../runs/acting.ts'
import { type Claim, claimNext, maxStalls } from '../runs/claim.ts'
import { keepLeases } from '../runs/leases.ts'
import { giveUpRun, handBackRun } from '../runs/release.ts'
import { createRunLog, readBlob } from '../runs/run-log.ts'
import { createSessionHeads } from '../runs/session-heads.ts'
import { createSteadySql, type SteadyLease } from '../runs/steady.ts'
import { createSlots } from '../slots.ts'
import { readProfile } from '../users.ts'

export type WorkerOptions = {
  database: Database
  feed: Feed
  graph: Graph
  /** The models, on behalf of whoever pays for the calls. */
  modelsFor(caller: Caller): Models
  scenarios: Scenarios
  embedder: Embedder
  clock: Clock
  log: Log
  workerId: string
  leaseMs: number
  concurrency: number
  files: FileService
  tracer?: Tracer
  /** Told of every run this process lets go of, with the state it held; tests compare that with what is stored. */
  onLeft?: (run: LiveRun, left: Left) => void
  /** Rings for a run that this process cannot take itself. */
  ring(run: { run_id: string; tenant: string }): void
}

/** Works on runs in this process: claims whose turn it is, keeps their leases, and lets go of them cleanly. */
export const createWorker = (options: WorkerOptions) => {
  const { database, feed, graph, clock, log, workerId, leaseMs, tracer = noTracer } = options
  const slots = createSlots(options.concurrency)
  const leases = keepLeases({ sql: database, clock, log, workerId, leaseMs })
  const stopHints = feed.onCancelling(() => void leases.lookForCancels())
  /** The runs at work; each with what resolves once no side effect of it is under way. */
  const controls = new Map<AbortController, () => Promise<void>>()
  const heads = createSessionHeads()
  let claiming: Promise<unknown> = Promise.resolve()
  let closing = false

  /** One claim at a time in this process; several would only stand in each other's way. */
  const claim = (): Promise<{ claim: Claim; at: number } | null> => {
    const next = claiming.then(async () => {
      if (closing) return null
      const at = leases.nowMs()
      const claimed = await claimNext(database, workerId, leaseMs, graph.version)
      return claimed && { claim: claimed, at }
    })
    claiming = next.catch(() => {})
    return next
  }

  const workOn = async ({ claim, at }: { claim: Claim; at: number }): Promise<void> => {
    const lease = new AbortController()
    const control = new AbortController()
    controls.set(control, async () => {})
    const held = leases.hold(claim, at, {
      onLost(reason) {
        lease.abort(reason)
        control.abort(new Stopped({ kind: 'lease_lost' }))
      },
      onCancel: (reason) => control.abort(new Stopped({ kind: 'cancel', reason })),
    })
    // claimed while this process was told to stop
    if (closing) control.abort(new Stopped({ kind: 'hand_back' }))
    const worked = { ms: claim.worked_ms }
    try {
      const fence = { signal: lease.signal, check: held.check }
      const left = await tracer.run(workOf(claim, workerId), (note) =>
        run(claim, control, fence, worked, note),
      )
      if (left === 'handed_back' && (await handBackRun(database, claim, worked.ms))) options.ring(claim)
      log.debug({ run_id: claim.run_id, left }, 'let go of a run')
    } catch (error) {
      // the lease lapses and another worker goes on from the last action
      log.error({ run_id: claim.run_id, error: String(error) }, 'work on a run was broken off')
    } finally {
      held.letGo()
      controls.delete(control)
      feed.changed(claim.tenant, claim.session_id)
    }
  }

  const run = async (
    claim: Claim,
    control: AbortController,
    lease: SteadyLease,
    worked: { ms: number },
    note: (facts: RunFacts) => void,
  ): Promise<Left> => {
    const poison = claim.stalls > maxStalls ? poisoned(claim) : null
    if (poison) {
      const left = (await giveUpRun(database, claim, poison)) ? 'ended' : 'lost'
      note({ left, outcome: left === 'ended' ? poison : null })
      return left
    }
    const sql = createSteadySql(database, clock, lease)
    // a session whose next action is its first has nothing to read
    const isNew = claim.next_seq === 1
    const state = isNew ? emptyState : await heads.load(sql, claim.tenant, claim.session_id, claim.turn)
    const { log: runLog, recorded } = watchActing(createRunLog(sql, claim, lease.check))
    controls.set(control, recorded)
    const live = new LiveRun(
      { ...claim, business_id: claim.tenant, state },
      {
        log: runLog,
        clock,
        newAttemptId,
        scenarios: options.scenarios,
        tracer,
        events: {
          onAction: () => feed.changed(claim.tenant, claim.session_id, 'action'),
          // a new claim's attempts come after all of the one before, so that they void what was streamed then
          onText: (delta) =>
            feed.streamed(claim.tenant, claim.session_id, {
              run_id: claim.run_id,
              ...delta,
              attempt: (claim.epoch - 1) * attemptsOfClaim + delta.attempt,
            }),
        },
      },
    )
    if (claim.cancel_requested)
      control.abort(new Stopped({ kind: 'cancel', reason: claim.cancel_reason ?? '' }))
    try {
      const left = await executeRun(graph, live, servicesOf(claim, sql), control)
      note({ left, outcome: left === 'ended' ? outcomeOf(live) : null })
      options.onLeft?.(live, left)
      return left
    } finally {
      worked.ms = live.workedMs
    }
  }

  const servicesOf = (claim: Claim, sql: Sql) => ({
    models: options.modelsFor({
      business_id: claim.tenant,
      user_id: claim.user_id,
      run_id: claim.run_id,
    }),
    files: options.files.for(sql, claim),
    blobs: { read: (hash: string) => readBlob(sql, claim.tenant, hash) },
    users: { profile: (userId: string) => readProfile(sql, claim.tenant, userId) },
    memories: createMemories({ database, embedder: options.embedder, log, tracer }, claim, claim),
    clock,
    log,
  })

  return {
    /**
     * Takes a run whose turn it is and works on it to its end, and then the next, until none is due. False when every
     * place stayed taken for `patienceMs`.
     */
    async offer(patienceMs: number): Promise<boolean> {
      await using slot = await slots.takeWithin(patienceMs)
      if (!slot) return false
      for (;;) {
        const claimed = await claim()
        if (!claimed) return true
        await workOn(claimed)
      }
    },
    get idle(): boolean {
      return slots.free > 0
    },
    /** Hands all runs back, waits for them to be let go, and stops the heartbeats. */
    async close(): Promise<void> {
      closing = true
      for (const [control, recorded] of controls)
        void settlesWithin(recorded(), actingMs).then(() => control.abort(new Stopped({ kind: 'hand_back' })))
      await slots.drained()
      stopHints()
      await leases.stop()
    },
  }
}

/** How long a side effect that is under way may take when its worker is told to stop. */
const actingMs = 5000

/** More than one claim's attempts at a call can ever be. */
const attemptsOfClaim = 1000

export type Worker = ReturnType<typeof createWorker>

const workOf = ({ tenant, stalls, ...claim }: Claim, workerId: string): RunWork => ({
  run_id: claim.run_id,
  business_id: tenant,
  session_id: claim.session_id,
  turn: claim.turn,
  epoch: claim.epoch,
  claims: stalls,
  worker_id: workerId,
})

const poisoned = (claim: Claim) =>
  failure(
    new MasonError('poison', `${claim.stalls - 1} workers took this run and none got one action further`, {
      remedy: 'look at what the workers logged for it; submit it again once that is mended',
    }),
  )
