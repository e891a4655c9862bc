import { z } from 'zod'
import { errorCodes, isMasonError, MasonError, toMasonError } from '../state/errors.ts'
import type { Clock, Log, Outcome } from '../state/ports.ts'
import { Stopped } from '../state/stopped.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import type { Graph } from './build.ts'
import { defaultLimits } from './limits.ts'
import type { LiveRun } from './live-run.ts'
import type { Services } from './visit.ts'

/** How work on a run in this process came to its end. */
export type Left = 'ended' | 'parked' | 'requeued' | 'lost' | 'handed_back'

/**
 * Works on a claimed run until it ends, waits, or is somebody else's. `control` is aborted with a `Stopped` by whoever
 * stops it. Faults of the run end the run; only faults of the database reach the caller, and the lease then lapses.
 */
export const executeRun = async (
  graph: Graph,
  run: LiveRun,
  services: Services,
  control: AbortController,
): Promise<Left> => {
  const stopClock = limitTime(run, services.clock, control)
  try {
    run.outcome ??= recordedFailure(run.actions)
    const missing = run.outcome || control.signal.aborted ? null : graph.missing(run)
    if (missing && (await passOn(run, missing, services.log).catch(cancelInstead(run)))) return 'requeued'
    if (!run.outcome) await walk(graph, run, services, control.signal)
    if (run.ended) return 'ended'
    const waiting = run.outcome ? null : await leaveWaiting(run).catch(cancelInstead(run))
    if (waiting) return waiting
    await endRun(graph, run, services)
    return 'ended'
  } catch (error) {
    if (isMasonError(error, 'lease_lost')) return 'lost'
    if (error instanceof Stopped) return error.stop.kind === 'hand_back' ? 'handed_back' : 'lost'
    throw error
  } finally {
    stopClock()
    // branches beside one that failed may still be at work: nobody waits for what they do
    control.abort(new Stopped({ kind: 'lease_lost' }))
  }
}

/** Walks the graph; faults and stops become the run's outcome. */
const walk = async (graph: Graph, run: LiveRun, services: Services, signal: AbortSignal): Promise<void> => {
  try {
    signal.throwIfAborted()
    await graph.walk({ run, services, signal })
  } catch (thrown) {
    // what a branch was committing when the walk was broken off comes first
    await run.settled()
    if (run.ended) return
    const error = signal.aborted ? signal.reason : thrown
    if (isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
    run.outcome = outcomeOf(error, run.failedAt)
  }
}

const outcomeOf = (error: unknown, node: string | null): Outcome => {
  if (error instanceof Stopped) {
    const { stop } = error
    if (stop.kind === 'cancel') return { status: 'cancelled', reason: stop.reason }
    if (stop.kind === 'time') return { status: 'completed', reason: 'time' }
    throw error
  }
  return failure(toMasonError(error, 'node_failed'), node)
}

const recordedSchema = z.object({
  code: z.enum(errorCodes),
  message: z.string(),
  remedy: z.string().optional(),
  detail: z.json().optional(),
})
type Fault = z.infer<typeof recordedSchema> | MasonError

/** The fault that an earlier worker wrote down, and died before it could end the run for it; null when there is none. */
const recordedFailure = (actions: readonly ReadonlyAction[]): Outcome | null => {
  for (const { node, next, result } of actions) {
    if (next.length !== 1 || next[0] !== 'end') continue
    const error = recordedSchema.safeParse(result.error)
    if (error.success) return failure(error.data, node)
  }
  return null
}

/** A fault as the end of a run. */
export const failure = ({ code, message, remedy, detail }: Fault, node: string | null = null): Outcome => ({
  status: 'failed',
  reason: code,
  error: {
    code,
    message: remedy ? `${message}; ${remedy}` : message,
    ...(node && { node }),
    ...(detail !== undefined && { detail }),
  },
})

/** Lays the run's `end`; a run that was stopped before its first action still opens its turn. */
const endRun = async (graph: Graph, run: LiveRun, services: Services): Promise<void> => {
  run.outcome ??= failure(new MasonError('internal', 'the graph stopped before its end'))
  const last = { run, services, signal: new AbortController().signal }
  if (run.actions.length === 0) await graph.visit('load-session', last)
  await graph.visit('end', last)
}

/** Parks the run for a person, or queues it for when its todos may be retried; null when it waits for neither. */
const leaveWaiting = async (run: LiveRun): Promise<Left | null> => {
  const [first] = run.suspended
  if (first) {
    await run.log.park(first.question, first.call, run.workedMs)
    return 'parked'
  }
  if (!run.waitsUntil) return null
  await run.log.requeue(run.waitsUntil.toISOString(), run.workedMs)
  return 'requeued'
}

/** Leaves the run to those who know the node that is missing here; where none of them comes, that is how it ends. */
const passOn = async (run: LiveRun, node: string, log: Log): Promise<true | null> => {
  if (await run.log.passOn(run.workedMs)) {
    log.warn({ run_id: run.claimed.run_id, node }, 'this worker does not know the node a run stands at')
    return true
  }
  run.outcome = failure(
    new MasonError(
      'invalid_graph',
      `the run is to go on at "${node}", and no worker that is there knows it`,
      {
        remedy: `start workers of the version that has "${node}", then submit it again`,
      },
    ),
  )
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

/** Time counts over all claims of the run, without queueing and waiting for people. */
const limitTime = (run: LiveRun, clock: Clock, control: AbortController): (() => void) => {
  const allowed = run.request.limits?.timeout_ms ?? defaultLimits.timeout_ms
  const done = new AbortController()
  clock.sleep(Math.max(0, allowed - run.workedMs), done.signal).then(
    () => control.abort(new Stopped({ kind: 'time' })),
    () => {},
  )
  return () => done.abort()
}
