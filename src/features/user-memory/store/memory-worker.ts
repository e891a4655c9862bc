import { once } from 'node:events'
import type { LearningTimes } from '../../../engine/sessions/user-memory.ts'
import { groupBy } from '../../../infra/lib/group-by.ts'
import { repeatWork } from '../../../infra/lib/repeat-work.ts'
import { openDeadline } from '../../../state/deadline.ts'
import { isMasonError } from '../../../state/errors.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import { noTracer } from '../../../state/ports/tracer.ts'
import { asksModel, type DistillationServices, distillRuns } from './distill-run.ts'
import {
  claimDistillations,
  dropFailedDistillations,
  failDistillation,
  type RunToDistill,
} from './distillation-queue.ts'
import { embedTurnBatch } from './embed-turns.ts'
import { reembedBatch } from './reembed.ts'
import { calibrateByTurns } from './space-calibration.ts'
import { readTurnBacklog } from './turn-backlog.ts'
import { readUnreadMemories } from './unread-words.ts'

/** Services and intervals of the memory worker. */
export type MemoryWorkerOptions = DistillationServices &
  LearningTimes & {
    clock: Clock
    /** Tokens of older turns that are embedded an hour and a business. */
    recallBacklogTokens?: number
  }

const reembedEveryMs = 30_000
/** Failures in one pass, one a business, after which the other businesses wait for the next pass. */
const maxEmbedErrors = 3

/** Runs that one process learns from at once; nearly all of their time is waiting for a model. */
const maxLearners = 4

/** Learns from ended runs and keeps vectors up to date, in the background. */
export const startMemoryWorker = (options: MemoryWorkerOptions): { close(): Promise<void> } => {
  const {
    database,
    clock,
    log,
    everyMs = 1000,
    leaseMs = 120_000,
    tracer = noTracer,
    recall = true,
    recallBacklogTokens = 200_000,
  } = options
  const stopped = new AbortController()

  /** Never rejects: logs errors, and the run is claimed again later. Runs that fail together are tried one by one, each on its own account. */
  const learn = async (runs: readonly RunToDistill[]): Promise<void> => {
    using deadline = openDeadline(leaseMs, stopped.signal)
    let learning: Promise<void> | undefined
    const learnOnce = () => (learning ??= distillRuns(options, runs, deadline.signal))
    try {
      await Promise.all(
        runs.map(({ run_id, tenant, tries }) =>
          tracer.learning({ run_id, business_id: tenant, tries }, learnOnce),
        ),
      )
    } catch (error) {
      if (isMasonError(error, 'lease_lost')) return
      if (runs.length > 1 && !deadline.signal.aborted) for (const one of runs) await learn([one])
      else for (const one of runs) await recordFailure(one, error)
    }
  }
  const recordFailure = async (run: RunToDistill, error: unknown): Promise<void> => {
    const { run_id, tries } = run
    if (!stopped.signal.aborted)
      log.warn({ run_id, tries, error: String(error) }, 'nothing was learned from a run')
    await failDistillation(database, run, String(error)).catch((recordError: unknown) =>
      log.warn({ run_id, error: String(recordError) }, 'a run is learned from again only after its lease'),
    )
  }
  /** Of runs that a model is asked about only as many as there are learners for; the others take no time. */
  const chooseRuns = (due: readonly RunToDistill[], maxAsking: number): RunToDistill[] => {
    const [asking, quick] = [true, false].map((asks) => due.filter((run) => asksModel(options, run) === asks))
    return [...(asking ?? []).slice(0, maxAsking), ...(quick ?? [])]
  }
  /** Those of one user that no model is asked about share a transaction; two turns of a session are never due together. */
  const groupRuns = (runs: readonly RunToDistill[]): RunToDistill[][] => [
    ...groupBy(runs, (run) =>
      JSON.stringify([run.tenant, run.user_id, asksModel(options, run) && run.run_id]),
    ).values(),
  ]
  /** Runs until nothing is due and no learner is left: one slow model does not delay the other runs. Returns whether any was due. */
  const distillAll = async (): Promise<boolean> => {
    const learners = new Set<Promise<void>>()
    let isAny = false
    const waitForOne = () => Promise.race(learners)
    /** Waits `everyMs` at most: runs that are due by then do not wait for slow ones. */
    const waitForOneOrPoll = async (): Promise<void> => {
      using poll = openDeadline(everyMs, stopped.signal)
      await Promise.race([waitForOne(), once(poll.signal, 'abort')])
    }
    try {
      while (!stopped.signal.aborted) {
        const { size: before } = learners
        const runs = await claimDistillations(database, leaseMs, (due) =>
          chooseRuns(due, maxLearners - before),
        )
        for (const group of groupRuns(runs)) {
          isAny = true
          const learner = learn(group).finally(() => learners.delete(learner))
          learners.add(learner)
          if (learners.size >= maxLearners) await waitForOne()
        }
        if (runs.length > 0) continue
        if (learners.size > 0) await waitForOneOrPoll()
        // a learner that ended meanwhile may have made the next turn of its session due
        else if (before === 0) break
      }
      return isAny
    } finally {
      await Promise.all(learners)
    }
  }
  // a business whose memories cannot be embedded does not delay the others
  const skippedBusinesses = new Set<string>()
  const embedAll = async (embedBatch: typeof embedTurnBatch): Promise<void> => {
    for (let errors = 0; !stopped.signal.aborted && errors < maxEmbedErrors; ) {
      const count = await embedBatch(options, stopped.signal, skippedBusinesses).catch((error: unknown) => {
        if (!stopped.signal.aborted) log.warn({ error: String(error) }, 'memories could not be embedded')
        errors++
        return null
      })
      if (count !== 0) continue
      skippedBusinesses.clear()
      return
    }
  }
  const maintain = async (): Promise<void> => {
    await dropFailedDistillations(database)
    if (recall) {
      const space = options.embedder.current()
      await readTurnBacklog(database, space, recallBacklogTokens, stopped.signal).catch((error: unknown) => {
        if (!stopped.signal.aborted)
          log.warn({ error: String(error) }, 'turns of earlier sessions could not be read')
      })
      await calibrateByTurns(database, space)
      await embedAll(embedTurnBatch)
    }
    await embedAll(reembedBatch)
  }
  /** New turns soon; those of a business whose model fails with the rest, at long intervals. */
  const learnAndEmbed = async (): Promise<void> => {
    const hasLearned = await distillAll()
    if (hasLearned && recall && (await embedTurnBatch(options, stopped.signal, skippedBusinesses)) > 0)
      await embedAll(embedTurnBatch)
  }
  const seldomMs = Math.max(everyMs, reembedEveryMs)
  const distilling = repeatWork(learnAndEmbed, everyMs, clock, log, 'learning from runs')
  const readWords = async (): Promise<void> => {
    while (!stopped.signal.aborted && (await readUnreadMemories(database)) > 0);
  }
  const reading = repeatWork(readWords, seldomMs, clock, log, 'reading the words of memories')
  const embedding = repeatWork(maintain, seldomMs, clock, log, 'embedding memories again')
  return {
    async close() {
      stopped.abort()
      await Promise.all([distilling, reading, embedding].map((loop) => loop.stop()))
    },
  }
}
