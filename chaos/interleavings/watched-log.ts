import type { RunClaim } from '../../src/engine/runs/claim.ts'
import { createRetryingSql } from '../../src/engine/runs/leases.ts'
import { createRunLog } from '../../src/engine/runs/run-log.ts'
import type { Database, TransactionalSql } from '../../src/infra/database/database.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import type { LogEntry, RunLog } from '../../src/state/ports/run-log.ts'
import { moves } from './protocol.ts'
import type { Actor } from './stage.ts'
import type { ProtocolState } from './state.ts'
import type { World } from './world.ts'

export const stillClock: Clock = { now: () => new Date(), monotonicMs: () => 0, sleep: async () => {} }
/** The database as a worker has it that never hears of having lost its run. */
export const retryingSql = (database: Database): TransactionalSql =>
  createRetryingSql(database, stillClock, { signal: new AbortController().signal, check() {} })
export const noMove = () => []

/** The log of the claim, each of its writes under the eyes of the model. */
export const watchedLog = ({ stage }: World, actor: Actor, claim: RunClaim): RunLog => {
  const log = (database: Database): RunLog => createRunLog(retryingSql(database), claim)
  /** One action, in the log exactly if it is said to be, and refused only when it has to be. */
  const commit = async (
    name: string,
    entry: LogEntry,
    move: (state: ProtocolState) => ProtocolState | null,
    write: (log: RunLog) => Promise<void>,
  ): Promise<void> => {
    const isAppended = () => stage.state.actions.some(({ attempt }) => attempt === entry.attempt_id)
    try {
      await stage.perform(
        actor,
        name,
        (state) => [move(state)],
        (database) => write(log(database)),
      )
    } catch (error) {
      stage.note('refused writes')
      if (isAppended()) stage.fail(`${actor.name} was refused action ${entry.seq}, which is there`)
      if (move(stage.state)) stage.fail(`${actor.name} was refused action ${entry.seq}, which it may append`)
      throw error
    }
    if (!isAppended())
      stage.fail(`${actor.name} was answered that action ${entry.seq} is there, and it is not`)
  }
  return {
    append: (entry) =>
      commit(
        'appends',
        entry,
        (state) => moves.append(state, claim, entry),
        (log) => log.append(entry),
      ),
    finish: (entry, outcome, result) =>
      commit(
        'finishes',
        entry,
        (state) => moves.finish(state, claim, entry, outcome.status),
        (log) => log.finish(entry, outcome, result),
      ),
    park: (questions, workedMs) =>
      stage.perform(
        actor,
        'parks',
        (state) => [
          moves.park(
            state,
            claim,
            questions.map(({ call }) => `${claim.run_id}|${call.plan_seq}|${call.index}`),
          ),
        ],
        (database, operation) => wait(operation, log(database).park(questions, workedMs)),
      ),
    requeue: (runAt, workedMs) =>
      stage.perform(
        actor,
        'requeues',
        (state) => [moves.requeue(state, claim)],
        (database, operation) => wait(operation, log(database).requeue(runAt, workedMs)),
      ),
    waitForModel: (outage, maxMs, workedMs) =>
      stage.perform(
        actor,
        'waits for a model',
        (state) => [moves.waitForModel(state, claim)],
        (database, operation) => wait(operation, log(database).waitForModel(outage, maxMs, workedMs)),
      ),
    startWaits: (call, first, requests) =>
      stage.perform(
        actor,
        'starts to wait',
        (state) => [moves.startWait(state, claim, `${claim.run_id}|${call.plan_seq}|${call.index}|${first}`)],
        (database) => log(database).startWaits(call, first, requests),
      ),
    endWait: () => Promise.reject(new Error('no call here waits for anything but a person')),
    delayPoll: () => Promise.reject(new Error('nothing here is polled')),
    closeWaits: () =>
      stage.perform(
        actor,
        'closes its waits',
        (state) => [moves.closeWaits(state, claim)],
        (database) => log(database).closeWaits(),
      ),
    readOutage: () => Promise.reject(new Error('no time is up here')),
    passToNewerWorker: () => Promise.reject(new Error('all workers here are of one version')),
    effect: (call, request, signal, options) =>
      stage.perform(
        actor,
        'acts',
        (state, seen) =>
          Object.keys(seen.effects).flatMap((id) => [
            moves.intend(state, claim, id, request.request),
            ...(['sent', 'unknown'] as const).map((to) => moves.effect(state, claim, id, to)),
          ]),
        (database) => log(database).effect(call, request, signal, options),
      ),
    readAnswer: (call) =>
      stage.perform(actor, 'looks for the answer', noMove, (database) => log(database).readAnswer(call)),
    storeBlob: () => Promise.reject(new Error('nothing here is that large')),
  }

  /** Waiting has begun exactly if the answer says so; a worker that lost the answer is answered that it lost the run, as it has. */
  async function wait<T>(operation: { moved: number }, waiting: Promise<T>): Promise<T> {
    const result = await waiting
    if (operation.moved !== 1) stage.fail(`${actor.name} was answered that the run waits, and it does not`)
    return result
  }
}
