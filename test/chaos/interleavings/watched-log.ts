import type { Database } from '../../../src/infra/database/database.ts'
import type { Claim } from '../../../src/infra/runs/claim.ts'
import { createRunLog } from '../../../src/infra/runs/run-log.ts'
import { createSteadySql } from '../../../src/infra/runs/steady.ts'
import type { Clock, LogEntry, RunLog, Sql } from '../../../src/state/ports.ts'
import { moves } from './protocol.ts'
import type { Actor } from './stage.ts'
import type { ProtocolState } from './state.ts'
import type { World } from './world.ts'

export const stillClock: Clock = { now: () => new Date(), monotonicMs: () => 0, sleep: async () => {} }
/** The database as a worker has it that never hears of having lost its run. */
export const steady = (database: Database): Sql =>
  createSteadySql(database, stillClock, { signal: new AbortController().signal, check() {} })
export const noMove = () => []

/** The log of the claim, each of its writes under the eyes of the model. */
export const watchedLog = ({ stage }: World, actor: Actor, claim: Claim): RunLog => {
  const log = (database: Database): RunLog => createRunLog(steady(database), claim)
  /** One action, in the log exactly if it is said to be, and refused only when it has to be. */
  const commit = async (
    name: string,
    entry: LogEntry,
    move: (state: ProtocolState) => ProtocolState | null,
    write: (log: RunLog) => Promise<void>,
  ): Promise<void> => {
    const isLaid = () => stage.state.actions.some(({ attempt }) => attempt === entry.attempt_id)
    try {
      await stage.perform(
        actor,
        name,
        (state) => [move(state)],
        (database) => write(log(database)),
      )
    } catch (error) {
      stage.note('refused writes')
      if (isLaid()) stage.fail(`${actor.name} was refused action ${entry.seq}, which is there`)
      if (move(stage.state)) stage.fail(`${actor.name} was refused action ${entry.seq}, which was its to lay`)
      throw error
    }
    if (!isLaid()) stage.fail(`${actor.name} was told that action ${entry.seq} is there, and it is not`)
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
    park: (question, call, workedMs) =>
      stage.perform(
        actor,
        'parks',
        (state) => [moves.park(state, claim, `${claim.run_id}|${call.plan_seq}|${call.index}`)],
        (database, operation) => wait(operation, log(database).park(question, call, workedMs)),
      ),
    requeue: (runAt, workedMs) =>
      stage.perform(
        actor,
        'requeues',
        (state) => [moves.requeue(state, claim)],
        (database, operation) => wait(operation, log(database).requeue(runAt, workedMs)),
      ),
    passOn: () => Promise.reject(new Error('all workers here are of one version')),
    effect: (call, request, signal, options) =>
      stage.perform(
        actor,
        'acts',
        (state, seen) =>
          Object.keys(seen.effects).flatMap((id) => [
            moves.intend(state, claim, id, request.request),
            ...(['sent', 'unknown'] as const).map((to) => moves.effect(state, claim, id, to)),
            options?.resend ? moves.effect(state, claim, id, 'intent') : null,
          ]),
        (database) => log(database).effect(call, request, signal, options),
      ),
    answerTo: (call) =>
      stage.perform(actor, 'looks for the answer', noMove, (database) => log(database).answerTo(call)),
    keepBlob: () => Promise.reject(new Error('nothing here is that large')),
  }

  /** Waiting has begun exactly if it is said; who lost the answer is told that the run is lost, which it is to him. */
  async function wait(operation: { moved: number }, waiting: Promise<void>): Promise<void> {
    await waiting
    if (operation.moved !== 1) stage.fail(`${actor.name} was told that the run waits, and it does not`)
  }
}
