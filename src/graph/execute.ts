import { z } from 'zod'
import { errorCodes, isMasonError, type MasonError, toMasonError } from '../state/errors.ts'
import type { Outcome } from '../state/outcome.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { Services } from '../state/ports/services.ts'
import { RunStoppedError } from '../state/run-stop.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import type { Graph } from './build.ts'
import type { LiveRun } from './live-run.ts'

/** How the work on a run in this process ended. `no_model`: it is queued for when a model may be available. */
export type RunExit = 'ended' | 'parked' | 'requeued' | 'no_model' | 'lost' | 'handed_back'

/**
 * Works on a claimed run until it ends, waits, or belongs to another worker. The worker stops it by aborting `control` with
 * a `RunStoppedError`. Errors of the run end the run; only database errors reach the caller, and the lease then expires.
 */
export const executeRun = async (
  graph: Graph,
  run: LiveRun,
  services: Services,
  control: AbortController,
): Promise<RunExit> => {
  const stopClock = limitTime(run, services.clock, control)
  try {
    run.outcome ??= readRecordedFailure(run.actions)
    if (!run.outcome && run.timeLeftMs <= 0) run.outcome = await endInOutage(run)
    const missing = run.outcome || control.signal.aborted ? null : graph.missing(run)
    if (missing && (await passToNewerWorker(run, missing, services.log).catch(cancelInstead(run))))
      return 'requeued'
    if (!run.outcome) await walkGraph(graph, run, services, control.signal)
    if (run.ended) return 'ended'
    const waiting = run.outcome ? null : await parkOrRequeue(run).catch(cancelInstead(run))
    if (waiting) return waiting
    await endRun(graph, run, services)
    return 'ended'
  } catch (error) {
    if (isMasonError(error, 'lease_lost')) return 'lost'
    if (error instanceof RunStoppedError) return error.stop.kind === 'hand_back' ? 'handed_back' : 'lost'
    throw error
  } finally {
    stopClock()
    // branches beside one that failed may still run: their results are not awaited
    control.abort(new RunStoppedError({ kind: 'lease_lost' }))
  }
}

/** Walks the graph; errors and stops become the run's outcome. */
const walkGraph = async (
  graph: Graph,
  run: LiveRun,
  services: Services,
  signal: AbortSignal,
): Promise<void> => {
  try {
    signal.throwIfAborted()
    await graph.walk({ run, services, signal })
  } catch (thrown) {
    // what a branch was committing when the walk was broken off comes first
    await run.settled()
    if (run.ended) return
    const error = signal.aborted ? signal.reason : thrown
    if (isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
    run.outcome = toOutcome(error, run.failedAt)
    if (run.outcome.reason === 'time') run.outcome = (await endInOutage(run)) ?? run.outcome
  }
}

const toOutcome = (error: unknown, node: string | null): Outcome => {
  if (error instanceof RunStoppedError) {
    const { stop } = error
    if (stop.kind === 'cancel') return { status: 'cancelled', reason: stop.reason }
    if (stop.kind === 'time') return { status: 'completed', reason: 'time' }
    throw error
  }
  return toFailedOutcome(toMasonError(error, 'node_failed'), node)
}

const recordedSchema = z.object({
  code: z.enum(errorCodes),
  message: z.string(),
  remedy: z.string().optional(),
  detail: z.json().optional(),
})
type RecordedError =
  | z.infer<typeof recordedSchema>
  | Pick<MasonError, 'code' | 'message' | 'remedy' | 'detail'>

/** The error that an earlier worker committed before it died and could not end the run; null when there is none. */
const readRecordedFailure = (actions: readonly ReadonlyAction[]): Outcome | null => {
  for (const { node, next, result } of actions) {
    if (next.length !== 1 || next[0] !== 'end') continue
    const error = recordedSchema.safeParse(result.error)
    if (error.success) return toFailedOutcome(error.data, node)
  }
  return null
}

/** An error as the outcome of a run. */
export const toFailedOutcome = (
  { code, message, remedy, detail }: RecordedError,
  node: string | null = null,
): Outcome => ({
  status: 'failed',
  reason: code,
  error: {
    code,
    message: remedy ? `${message}; ${remedy}` : message,
    ...(node && { node }),
    ...(detail !== undefined && { detail }),
  },
})

/** Appends the run's `end`; a run that was stopped before its first action still opens its turn. */
const endRun = async (graph: Graph, run: LiveRun, services: Services): Promise<void> => {
  run.outcome ??= toFailedOutcome({ code: 'internal', message: 'the graph stopped before its end' })
  const last = { run, services, signal: new AbortController().signal }
  if (run.actions.length === 0) await graph.visit('load-session', last)
  await graph.visit('end', last)
}

/** How a run ends whose time is up while no model is available; null when it does not wait for one. */
const endInOutage = async (run: LiveRun): Promise<Outcome | null> => {
  const outage = await run.log.readOutage()
  const last = outage?.last.at(-1) ?? outage?.first.at(-1)
  if (!outage || !last) return null
  const tries = outage.first.length + outage.omitted + outage.last.length
  return toFailedOutcome(
    {
      code: 'model_unavailable',
      message: `no model was available until the time of the run was up, after ${tries} tries; the last: ${last.message}`,
      remedy: 'submit the run again once a model is available, or give it a longer timeout_ms',
      detail: outage,
    },
    last.node,
  )
}

/** Parks the run for what its calls wait for, or queues it for when a model may be available or its todos may be retried; else null. */
const parkOrRequeue = async (run: LiveRun): Promise<RunExit | null> => {
  // a wait ends by itself, also while the run is queued for a model
  if (run.openQuestions.length > 0 || (run.isWaiting && !run.outage))
    return run.log.park(run.openQuestions, run.workedMs)
  if (run.outage) {
    await run.log.waitForModel(run.outage, Math.max(0, run.timeLeftMs), run.workedMs)
    return 'no_model'
  }
  if (!run.waitsUntil) return null
  await run.log.requeue(run.waitsUntil.toISOString(), run.workedMs)
  return 'requeued'
}

/** Leaves the run to a worker that knows the missing node; where there is none, the run fails. */
const passToNewerWorker = async (run: LiveRun, node: string, log: Log): Promise<true | null> => {
  if (await run.log.passToNewerWorker(run.workedMs)) {
    log.warn({ run_id: run.claimed.run_id, node }, 'this worker does not know the next node of a run')
    return true
  }
  run.outcome = toFailedOutcome({
    code: 'invalid_graph',
    message: `the run is to go on at "${node}", and no worker that is there knows it`,
    remedy: `start workers of the version that has "${node}", then submit it again`,
  })
  return null
}

/** A run that was cancelled as it was about to wait ends instead. */
const cancelInstead =
  (run: LiveRun) =>
  (error: unknown): null => {
    if (!isMasonError(error, 'cancelled')) throw error
    run.outcome = { status: 'cancelled', reason: error.message }
    return null
  }

/** Time counts over all claims of the run, with waiting for a model, without queueing and waiting for people. */
const limitTime = (run: LiveRun, clock: Clock, control: AbortController): (() => void) => {
  const done = new AbortController()
  clock.sleep(Math.max(0, run.timeLeftMs), done.signal).then(
    () => control.abort(new RunStoppedError({ kind: 'time' })),
    () => {},
  )
  // an error of its own would cost a stack
  return () => done.abort('the work has ended')
}
