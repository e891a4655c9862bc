import { setMaxListeners } from 'node:events'
import type { Graph } from '../../graph/build.ts'
import { executeRun, type RunExit, toFailedOutcome } from '../../graph/execute.ts'
import { createLiveRun, type LiveRun } from '../../graph/live-run.ts'
import { currentOutcome } from '../../graph/visit.ts'
import type { Database, RunKey } from '../../infra/database/database.ts'
import { newAttemptId } from '../../infra/lib/ids.ts'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import type { Metrics } from '../../infra/telemetry/metrics.ts'
import type { Outcome } from '../../state/outcome.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { RunLog } from '../../state/ports/run-log.ts'
import { noTracer, type RunFacts, type RunWork, type Tracer } from '../../state/ports/tracer.ts'
import { RunStoppedError } from '../../state/run-stop.ts'
import { emptyState } from '../../state/runtime-state.ts'
import type { Scenarios } from '../../state/scenario.ts'
import { turnUsage } from '../../state/turn.ts'
import type { Feed } from '../events/feed.ts'
import { createAppendBatches } from '../runs/append-batches.ts'
import { claimNextRun, maxStalls, type RunClaim } from '../runs/claim.ts'
import { guardEffects } from '../runs/effects.ts'
import { createLatestPositions } from '../runs/latest-positions.ts'
import { createRetryingSql, type LeaseGuard, startLeaseRenewal } from '../runs/leases.ts'
import { failPoisonedRun, handBackRun } from '../runs/release.ts'
import { createRunLog } from '../runs/run-log.ts'
import { createServices, createVisitServices, type ServiceFactories } from '../runs/run-services.ts'
import type { SecretAnswers } from '../runs/secret-answers.ts'
import type { ReportRunEnd, RunEnd } from '../runs/settlement.ts'
import { createKnownRuns } from './known-runs.ts'
import { createThreadShares } from './thread-shares.ts'
import { createWorkPermits } from './work-permits.ts'

/** What a worker reports of its runs, for the log and the metrics. Times in milliseconds. */
export type WorkerReports = Pick<Metrics, 'runClaimed' | 'appended' | 'leaseLost'> & { ended: ReportRunEnd }

/** What a worker needs; see `createWorker`. */
export type WorkerOptions = {
  database: Database
  feed: Feed
  graph: Graph
  services: ServiceFactories
  secretAnswers?: SecretAnswers
  scenarios: Scenarios
  clock: Clock
  log: Log
  workerId: string
  leaseMs: number
  /** Visits, and claims, that work at once. */
  concurrency: number
  /** Runs at once, at work and waiting. */
  maxRuns: number
  tracer?: Tracer
  reports?: WorkerReports
  /** Called with every run that this process releases and its state; tests compare that with the stored rows. */
  onRunReleased?: (run: LiveRun, exit: RunExit) => void
  /** Wakes another worker for a run that this process cannot take. */
  wake(run: RunKey): void
}

/** A claimed run, when its claim was sent, and the permit for the work until its first visit. */
type ClaimedWork = { claim: RunClaim; at: number; permit: AsyncDisposable }

/** Executes runs in this process: claims them in turn, renews their leases, and releases them cleanly. */
export const createWorker = (options: WorkerOptions) => {
  const { database, feed, graph, clock, log, workerId, leaseMs, reports, tracer = noTracer } = options
  const shares = createThreadShares(() => clock.monotonicMs())
  const permits = createWorkPermits(options.concurrency, shares)
  const leases = startLeaseRenewal({ sql: database, clock, log, workerId, leaseMs })
  const appendTogether = createAppendBatches(database, leaseMs)
  const stopHints = feed.onCancel(() => void leases.pollCancels())
  /** The runs in progress; each with a promise that resolves once none of its side effects is pending. */
  const controls = new Map<AbortController, () => Promise<void>>()
  const latestPositions = createLatestPositions()
  const known = createKnownRuns(options.maxRuns)
  let polling: NodeJS.Timeout | undefined
  const chains = new Set<Promise<void>>()
  let claiming: Promise<unknown> = Promise.resolve()
  let willClaimAny = false
  let closing = false

  /** Whether no run of a business, or of none in particular, may be claimed for now. */
  const isHeldUp = (tenant?: string): boolean =>
    !known.mayTake(tenant) || (tenant !== undefined && permits.waiting().includes(tenant))

  /**
   * The businesses that get no run for now, since their claims are spaced or their begun runs wait for permits, with the
   * milliseconds until they may get one. A claim follows then.
   */
  const listDelayed = (): Map<string, number> => {
    const waiting = permits.waiting().map((tenant): [string, number] => [tenant, waitingPollMs])
    const waits = new Map([...waiting, ...shares.listWaits()])
    if (waits.size > 0) pollIn(Math.min(...waits.values()))
    return waits
  }
  const pollIn = (ms: number): void => {
    if (closing) return
    polling ??= setTimeout(() => {
      polling = undefined
      poll()
    }, ms).unref()
  }

  /**
   * One claim at a time in this process; several would only block each other. `woken`: where it is known by then, nothing is due.
   * Without, none where another such claim has not begun: where it finds a run, the next one follows.
   */
  const claim = async (woken?: RunKey): Promise<ClaimedWork | null> => {
    if (!woken && willClaimAny) return null
    willClaimAny ||= !woken
    const next = claiming.then(async () => {
      if (!woken) willClaimAny = false
      // what is due of this business is claimed when its time has come: until then it costs neither a query nor a permit
      if (woken && listDelayed().has(woken.tenant)) return null
      const permit = await permits.claim()
      let claimed: RunClaim | null = null
      try {
        if (closing || (woken && known.has(woken)) || !known.mayTake()) return null
        const at = leases.nowMs()
        const order = known.claimOrder()
        order.excluded.push(...listDelayed().keys())
        claimed = await claimNextRun(database, workerId, leaseMs, graph.version, order)
        if (!claimed) return null
        known.take(claimed)
        shares.claimed(claimed.tenant)
        return { claim: claimed, at, permit }
      } finally {
        if (!claimed) await permit[Symbol.asyncDispose]()
      }
    })
    claiming = next.catch(() => {})
    // without a wake-up more than one may be due
    if (!woken)
      next.then(
        (claimed) => claimed && !listDelayed().has(claimed.claim.tenant) && poll(),
        () => {},
      )
    return next
  }

  /** Works on a run to its end, then claims the next, until none is due. */
  const workOnAll = async (first: ClaimedWork | null): Promise<void> => {
    for (let next = first; next; ) {
      await workOn(next)
      // of a business that is held up the timer claims
      next = listDelayed().has(next.claim.tenant) ? null : await claim()
    }
  }
  const logClaimError = (error: unknown): void => log.warn({ error: String(error) }, 'a claim failed')
  /** Claims what is due. */
  const poll = (): void => void offer(0).catch(logClaimError)

  const workOn = async ({ claim, at, permit }: ClaimedWork): Promise<void> => {
    const lease = new AbortController()
    const control = new AbortController()
    // each visit listens
    setMaxListeners(0, control.signal)
    controls.set(control, async () => {})
    const heldLease = leases.hold(claim, at, {
      onLost(reason) {
        lease.abort(reason)
        control.abort(new RunStoppedError({ kind: 'lease_lost' }))
      },
      onCancel: (reason) => control.abort(new RunStoppedError({ kind: 'cancel', reason })),
    })
    // claimed while this process was stopping
    if (closing) control.abort(new RunStoppedError({ kind: 'hand_back' }))
    const worked = { ms: claim.worked_ms }
    if (claim.waited_ms !== null) reports?.runClaimed(claim.waited_ms)
    let exit: RunExit | null = null
    try {
      const fence = { signal: lease.signal, check: heldLease.check }
      exit = await tracer.run(toRunWork(claim, workerId), (note) =>
        run(claim, control, fence, worked, note, permit),
      )
      if (exit === 'handed_back' && (await handBackRun(database, claim, worked.ms, reports?.ended)))
        options.wake(claim)
      log.debug({ run_id: claim.run_id, exit }, 'released a run')
    } catch (error) {
      // the lease expires and another worker continues after the last action
      log.error({ run_id: claim.run_id, error: String(error) }, 'the work on a run failed')
    } finally {
      await permit[Symbol.asyncDispose]()
      if (exit === 'lost' || lease.signal.aborted) reports?.leaseLost()
      if (exit === 'no_model') shares.unserved(claim.tenant)
      heldLease.release()
      controls.delete(control)
      known.release(claim, exit === 'ended')
      feed.publishChange(claim.tenant, claim.session_id)
    }
  }

  const run = async (
    claim: RunClaim,
    control: AbortController,
    lease: LeaseGuard,
    worked: { ms: number },
    note: (facts: RunFacts) => void,
    permit: AsyncDisposable,
  ): Promise<RunExit> => {
    const poison = claim.stalls > maxStalls ? createPoisonOutcome(claim) : null
    if (poison) {
      const settled = await failPoisonedRun(database, claim, poison)
      if (settled) reports?.ended(settled)
      const exit = settled ? 'ended' : 'lost'
      note({ exit, outcome: settled && poison })
      return exit
    }
    const sql = createRetryingSql(database, clock, lease)
    // before its first action a session has no rows
    const isNew = claim.next_seq === 1
    const state = isNew
      ? emptyState
      : await latestPositions.load(sql, claim.tenant, claim.session_id, claim.turn)
    const { log: runLog, whenRecorded } = guardEffects(
      timeAppends(
        createRunLog(
          sql,
          { ...claim, worker_id: workerId },
          { lease, appendTogether },
          options.secretAnswers,
        ),
        clock,
        reports,
      ),
    )
    controls.set(control, whenRecorded)
    let isFirstAction = true
    const live = createLiveRun(
      { ...claim, business_id: claim.tenant, state },
      {
        log: runLog,
        clock,
        newId: newAttemptId,
        scenarios: options.scenarios,
        tracer,
        permit: (signal) => permits.beginVisit(claim.tenant, signal),
        servicesFor: createVisitServices(options.services, claim, sql),
        events: {
          onAction: () => {
            shares.worked(claim.tenant)
            // the end is published as a status, once the run is released
            if (!live.ended)
              feed.publishChange(claim.tenant, claim.session_id, isFirstAction ? 'claimed' : 'action')
            isFirstAction = false
            if (known.trust(claim)) poll()
          },
          // attempts of a new claim are numbered after those of the last, so that they void its streamed text
          onText: (delta) =>
            feed.publishDelta(claim.tenant, claim.session_id, {
              run_id: claim.run_id,
              ...delta,
              attempt: (claim.epoch - 1) * maxAttemptsPerClaim + delta.attempt,
            }),
        },
      },
    )
    if (claim.cancel_requested)
      control.abort(new RunStoppedError({ kind: 'cancel', reason: claim.cancel_reason ?? '' }))
    await permit[Symbol.asyncDispose]()
    try {
      const exit = await executeRun(graph, live, createServices(options.services, claim, sql), control)
      const outcome = exit === 'ended' ? currentOutcome(live) : null
      note({ exit, outcome })
      if (outcome) reports?.ended(toRunEnd(live, outcome))
      options.onRunReleased?.(live, exit)
      return exit
    } finally {
      worked.ms = live.workedMs
    }
  }

  /**
   * Claims a run and works on it to its end, then the next, until none is due; `ended` resolves then. Null, after `patienceMs`,
   * when this worker has as many runs as it may, or as many of this business. A wake-up for a run that this worker has or has
   * ended asks the database nothing: the claim after a run finds it where it is due again.
   */
  const offer = async (patienceMs: number, woken?: RunKey): Promise<{ ended: Promise<void> } | null> => {
    if (woken && known.has(woken)) return { ended: Promise.resolve() }
    const first = claim(woken)
    const ended = first
      .catch(() => null)
      .then(workOnAll)
      .catch(logClaimError)
      .finally(() => chains.delete(ended))
    chains.add(ended)
    const claimed = await first
    if (!claimed && isHeldUp(woken?.tenant)) {
      await clock.sleep(patienceMs)
      return null
    }
    // another run came first, whose own wake-up is dropped now: the woken one may still be due
    return claimed && woken && !known.has(woken) ? offer(patienceMs, woken) : { ended }
  }

  return {
    offer,
    poll,
    /** Whether it may have another run. */
    get hasCapacity(): boolean {
      return known.mayTake()
    },
    /** The runs that this worker has, and how many permits are in use. */
    counts: () => ({ runs: known.held, working: permits.held }),
    /** Hands all runs back, waits until they are released, and stops the heartbeats. */
    async close(): Promise<void> {
      closing = true
      clearTimeout(polling)
      for (const [control, recorded] of controls)
        void settlesWithin(recorded(), effectTimeoutMs).then(() =>
          control.abort(new RunStoppedError({ kind: 'hand_back' })),
        )
      await Promise.all(chains)
      stopHints()
      await leases.stop()
    },
  }
}

const timeAppends = (log: RunLog, clock: Clock, reports: WorkerReports | undefined): RunLog => {
  const timed =
    <Args extends unknown[]>(write: (...args: Args) => Promise<void>) =>
    async (...args: Args): Promise<void> => {
      const since = clock.monotonicMs()
      await write(...args)
      reports?.appended(clock.monotonicMs() - since)
    }
  return { ...log, append: timed(log.append), finish: timed(log.finish) }
}

const toRunEnd = ({ claimed, actions, state, workedMs }: LiveRun, outcome: Outcome): RunEnd => ({
  run_id: claimed.run_id,
  business_id: claimed.business_id,
  outcome,
  actions: actions.length,
  tokens: turnUsage(state).total_tokens,
  ms: Math.round(workedMs),
})

/** How soon runs are claimed of a business whose begun runs wait for permits. */
const waitingPollMs = 100

/** How long a worker that stops waits for a pending side effect. */
const effectTimeoutMs = 5000

/** More attempts than one claim can make at a call. */
const maxAttemptsPerClaim = 1000

/** See `createWorker`. */
export type Worker = ReturnType<typeof createWorker>

const toRunWork = ({ tenant, stalls, ...claim }: RunClaim, workerId: string): RunWork => ({
  run_id: claim.run_id,
  business_id: tenant,
  session_id: claim.session_id,
  turn: claim.turn,
  epoch: claim.epoch,
  claims: stalls,
  worker_id: workerId,
})

const createPoisonOutcome = (claim: RunClaim) =>
  toFailedOutcome({
    code: 'poison',
    message: `${claim.stalls - 1} workers took this run and none of them committed an action`,
    remedy: 'read what the workers logged for it, fix the cause, then submit it again',
  })
