import { claimNextRun, maxStalls, type RunClaim } from '../../src/engine/runs/claim.ts'
import { failPoisonedRun, handBackRun } from '../../src/engine/runs/release.ts'
import { readActionRows } from '../../src/engine/runs/run-queries.ts'
import { sendCallEffect } from '../../src/graph/call-effect.ts'
import { createLiveRun, type LiveRun } from '../../src/graph/live-run.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { foldActions } from '../../src/state/fold.ts'
import type { Outcome } from '../../src/state/outcome.ts'
import type { EffectResult, UnknownEffect } from '../../src/state/ports/effects.ts'
import type { SqlValues } from '../../src/state/ports/sql.ts'
import { attemptPrefix } from './compare.ts'
import { beatOnce } from './heartbeat.ts'
import { claimable, isOurs, moves } from './protocol.ts'
import type { Actor } from './stage.ts'
import type { ProtocolState } from './state.ts'
import { noMove, retryingSql, stillClock, watchedLog } from './watched-log.ts'
import type { World } from './world.ts'

const never = (): AbortSignal => new AbortController().signal
const leaseMs = 3_600_000
const failed: Outcome = { status: 'failed', reason: 'poison', error: { code: 'poison', message: 'poison' } }
const cancelled: Outcome = { status: 'cancelled', reason: 'enough' }
const answered: Outcome = { status: 'completed', reason: 'answered' }

/** A worker that waits for wake-ups, and works on what is due; one that lost its run without hearing of it goes on. */
export const work =
  (world: World) =>
  async (actor: Actor): Promise<never> => {
    for (;;) {
      await world.queue.takeWakeUp(actor)
      for (let claim = await take(world, actor); claim; claim = await take(world, actor))
        await workOn(world, actor, claim).catch((error: unknown) => {
          if (!isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
        })
    }
  }

const take = async ({ stage, limit }: World, actor: Actor): Promise<RunClaim | null> => {
  const claims = (state: ProtocolState, seen: ProtocolState) => {
    const id = Object.keys(seen.runs).find((run) => seen.runs[run]?.epoch !== state.runs[run]?.epoch)
    return id === undefined ? [] : [moves.claim(state, id, limit)]
  }
  try {
    return await stage.perform(actor, 'claims', claims, async (database, operation) => {
      const claim = await claimNextRun(database, actor.name, leaseMs)
      if (claim && (operation.moved !== 1 || !isOurs(stage.state, claim)))
        stage.fail(`${actor.name} was given a run that it has not claimed`)
      if (!claim && claimable(stage.state, limit).length > 0)
        stage.fail(`${actor.name} was answered that nothing is due`)
      return claim
    })
  } catch (error) {
    // who gets no answer to a claim does not have it: its lease has to end
    if (isMasonError(error, 'database_unavailable')) return null
    throw error
  }
}

const workOn = async (world: World, actor: Actor, claim: RunClaim): Promise<void> => {
  const { stage } = world
  if (claim.stalls > maxStalls) {
    await giveUp(world, actor, claim)
    return
  }
  const rows = await stage.perform(actor, 'reads', noMove, (database) =>
    readActionRows(retryingSql(database), claim.tenant, claim.session_id, claim.turn),
  )
  const run = createLiveRun(
    { ...claim, business_id: claim.tenant, state: foldActions(rows) },
    {
      log: watchedLog(world, actor, claim),
      clock: stillClock,
      newId: () => `${attemptPrefix}${world.number()}`,
      events: { onAction() {}, onText() {} },
    },
  )
  if (claim.cancel_requested) return cancel(run)
  try {
    while (await goOn(world, actor, claim, run));
  } catch (error) {
    if (!isMasonError(error, 'cancelled')) throw error
    await cancel(run)
  }
}

const giveUp = ({ stage }: World, actor: Actor, claim: RunClaim): Promise<boolean> =>
  stage.perform(
    actor,
    'gives up',
    (state) => [moves.giveUp(state, claim)],
    async (database, operation) => {
      const isGivenUp = (await failPoisonedRun(database, claim, failed)) !== null
      if (isGivenUp !== operation.moved > 0)
        stage.fail(`${actor.name} was answered otherwise than it gave up`)
      return isGivenUp
    },
  )
const append = (run: LiveRun, summary: string, effect: EffectResult | null = null) =>
  run.append(run.openVisit(), 'load-session', { summary, next: [] }, {}, effect)
const end = async (run: LiveRun, outcome: Outcome): Promise<void> => {
  await run.finish(run.openVisit(), { summary: 'end' }, {}, outcome)
}

const cancel = async (run: LiveRun): Promise<void> => {
  await run.log.closeWaits()
  await end(run, cancelled)
}

const outage = { node: 'planner', code: 'model_unavailable', message: 'down', waitMs: leaseMs }

/** The next thing that this run does, chosen by how many actions it has; false once the worker has released it. */
const goOn = async (world: World, actor: Actor, claim: RunClaim, run: LiveRun): Promise<boolean> => {
  const { stage } = world
  switch (stage.choose(8)) {
    case 7:
      await stage.perform(
        actor,
        'hands back',
        (state) => [moves.handBack(state, claim)],
        (database) => handBackRun(database, claim, 1),
      )
      return false
    case 6:
      return beat(world, actor, claim)
    case 5:
      // a run that has not begun has nothing to wait for
      if (run.actions.length === 0) return true
      if (stage.choose(2) === 0) await run.log.requeue(new Date(Date.now() + leaseMs).toISOString(), 1)
      else await run.log.waitForModel(outage, Number.MAX_SAFE_INTEGER, 1)
      return false
    case 4:
      // mostly it hangs for good, and the lease has to end
      return stage.choose(2) === 1 && !(await giveUp(world, actor, claim))
    default:
  }
  switch (run.actions.length) {
    case 0:
      await append(run, 'begins')
      return true
    case 1:
      await Promise.all([append(run, 'one branch'), append(run, 'another branch')])
      return true
    case 3:
      await pay(world, actor, claim, run)
      return true
    case 4:
    case 5:
      return waitForBoth(claim, run)
    case 6:
      await end(run, answered)
      return false
    default:
      await append(run, 'goes on')
      return true
  }
}

const beat = async ({ stage }: World, actor: Actor, claim: RunClaim): Promise<boolean> =>
  stage.perform(actor, 'beats', noMove, async (database) => {
    let expected = false
    const watching: Database = {
      ...database,
      query: async <Row>(text: string, values?: SqlValues) => {
        const answer = await database.query<Row>(text, values)
        expected = isOurs(stage.state, claim) && stage.state.runs[claim.run_id]?.lease === 'held'
        if (answer.rows.length > 0 !== expected)
          stage.fail(
            `${actor.name} was answered ${answer.rows.length > 0 ? 'that it still has' : 'that it lost'} its run`,
          )
        return answer
      },
    }
    return beatOnce(watching, claim)
  })

/** What an operator decides, under the fence here: the run is locked where its worker waits for one. */
const resendStatement = `UPDATE effects e SET status = 'intent', first_sent_at = NULL FROM runs r WHERE r.run_id = e.run_id
  AND r.run_id = $1 AND r.epoch = $2 AND r.status = 'running' AND e.effect_id = $3 AND e.status = 'unknown'`

/** The call's side effect; what stays unknown an operator looks up, and may allow again. */
const pay = async (
  { provider, stage }: World,
  actor: Actor,
  claim: RunClaim,
  run: LiveRun,
): Promise<void> => {
  const call = { plan_seq: run.actions[2]?.id ?? 0, index: 0 }
  const request = provider.requestOf(actor, claim, claim.request.prompt)
  const mayResend = async ({ effect_id }: UnknownEffect): Promise<boolean> => {
    if (stage.choose(2) !== 1 || !provider.mayResend(effect_id)) return false
    const values = [claim.run_id, claim.epoch, effect_id]
    await stage.perform(
      actor,
      'is allowed to send again',
      (state) => [moves.effect(state, claim, effect_id, 'intent')],
      (database) => database.query(resendStatement, values),
    )
    return true
  }
  const known = async (): Promise<EffectResult> => {
    try {
      return await sendCallEffect(run.log, call, request, mayResend, never())
    } catch (error) {
      if (!isMasonError(error, 'effect_unknown')) throw error
      const { effect_id } = error.detail as UnknownEffect
      return { effect_id, response: 'an operator looks after it' }
    }
  }
  await append(run, 'paid', await known())
}

const question = { question: 'Well?', schema: { type: 'string' }, options: [], expires_in_ms: leaseMs }

/** Two calls of one plan: one asks a person, the other waits for what is ended under the run's id. */
const waitForBoth = async (claim: RunClaim, run: LiveRun): Promise<boolean> => {
  const plan_seq = run.actions[3]?.id ?? 0
  const asks = { plan_seq, index: Number(claim.request.prompt) }
  const isDone = (summary: string): boolean => run.actions.some((action) => action.summary === summary)
  if (!isDone('has waited')) {
    const wait = { kind: 'run' as const, refId: claim.run_id, expiresInMs: leaseMs }
    const [state] = await run.log.startWaits({ plan_seq, index: 9 }, 0, [wait])
    if (state?.outcome) {
      await append(run, 'has waited')
      return true
    }
  }
  const isAnswered = isDone('has an answer')
  if (!isAnswered && (await run.log.readAnswer(asks))) {
    await append(run, 'has an answer')
    return true
  }
  await run.log.park(isAnswered ? [] : [{ question, call: asks }], 1)
  return false
}
