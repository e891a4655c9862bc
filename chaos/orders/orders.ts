import type { Actor } from './actor.ts'
import { type Connections, type EffectClass, openStage, type Stage } from './stage.ts'

const maxReported = 3

/** What was played. `wrong`: the first orders that broke an invariant, step by step. */
export type Played = { orders: number; ends: Record<string, number>; wrong: string[] }

/** Every order of the steps of two, each of whom takes so many. */
const interleavings = (first: number, second: number): string[] => {
  if (first === 0 || second === 0) return ['A'.repeat(first) + 'B'.repeat(second)]
  return [
    ...interleavings(first - 1, second).map((rest) => `A${rest}`),
    ...interleavings(first, second - 1).map((rest) => `B${rest}`),
  ]
}

export const createOrders = (connections: Connections) => {
  const played: Played = { orders: 0, ends: {}, wrong: [] }
  const note = (steps: readonly string[], faults: readonly string[]): void => {
    for (const fault of faults)
      if (played.wrong.length < maxReported) played.wrong.push(`${steps.join(', ')}: ${fault}`)
  }
  const play = async <T>(
    options: Parameters<typeof openStage>[1],
    act: (stage: Stage) => Promise<T>,
  ): Promise<T> => {
    const stage = await openStage(connections, options)
    try {
      const result = await act(stage)
      note(stage.steps, await stage.judge())
      played.orders++
      return result
    } catch (error) {
      throw new Error(`after ${stage.steps.join(', ')}`, { cause: error })
    } finally {
      await stage.close()
    }
  }
  return { played, note, play }
}

type Orders = ReturnType<typeof createOrders>

/** The points that a worker passes which does a run alone. */
export const listPoints = ({ play }: Orders, effect: EffectClass): Promise<readonly string[]> =>
  play({ effect }, async (stage) => {
    const { actor } = stage.worker('A')
    await stage.advance(actor, null)
    return actor.passed
  })

/**
 * One worker is frozen at this point until its lease has ended and another has taken the run to each of its points in
 * turn; then both go on. Had it been killed in place of that, the run must have ended without it: that is judged before.
 * `isNoticed`: its clock shows how long it was frozen; else only the database refuses it.
 */
export const playFreeze = async (
  { note, play }: Orders,
  point: string,
  { effect, isNoticed }: { effect: EffectClass; isNoticed: boolean },
): Promise<void> => {
  const freezeAt = (other: string | null) =>
    play({ effect }, async (stage) => {
      const [frozen, second] = [stage.worker('A'), stage.worker('B')]
      await stage.advance(frozen.actor, point)
      await stage.endLeases()
      await stage.advance(second.actor, other)
      if (other === null) note([...stage.steps, 'and the first is killed'], await stage.judge())
      if (isNoticed) frozen.freeze()
      await stage.advance(frozen.actor, null)
      await stage.finish(frozen.actor, second.actor)
      // what it claimed after it was frozen it has let go of
      if (isNoticed) {
        await stage.endLeases()
        await stage.finish(stage.worker('C').actor)
      }
      return second.actor.passed
    })
  for (const other of await freezeAt(null)) await freezeAt(other)
}

/** Both at their points in each order, one step at a time; then to their ends. */
const playSteps = async (
  stage: Stage,
  order: string,
  actors: { A: Actor; B: Actor },
  stops: { A: readonly string[]; B: readonly string[] },
): Promise<void> => {
  const left = { A: [...stops.A], B: [...stops.B] }
  for (const who of order) {
    const name = who as 'A' | 'B'
    await stage.advance(actors[name], left[name].shift() ?? null)
  }
  await stage.finish(actors.A, actors.B)
}

/** Two workers at their claims of one run, of which one gets it. */
export const playClaims = async ({ play }: Orders): Promise<void> => {
  const stops = ['before-claim:1', 'after-claim:1']
  for (const order of interleavings(3, 3))
    await play({}, async (stage) => {
      const actors = { A: stage.worker('A').actor, B: stage.worker('B').actor }
      await playSteps(stage, order, actors, { A: stops, B: stops })
    })
}

/** One worker ends a run while another claims: the next of the session is taken once, and never before. */
export const playFinish = async ({ play }: Orders): Promise<void> => {
  const A = ['before-finish:1', 'after-finish:1', 'before-claim:2', 'after-claim:2']
  for (const order of interleavings(5, 3))
    await play({ runs: 2 }, async (stage) => {
      const actors = { A: stage.worker('A').actor, B: stage.worker('B').actor }
      await playSteps(stage, order, actors, { A, B: ['before-claim:1', 'after-claim:1'] })
      // a claim that came too early found nothing; the next look does
      await stage.advance(stage.worker('B').actor, null)
    })
}

/** A worker at this point, and a cancel at each of its points, each of them first. */
export const playCancel = async ({ played, play }: Orders, point: string): Promise<void> => {
  const cancelAt = (other: string | null, isFirst: boolean) =>
    play({}, async (stage) => {
      const { actor } = stage.worker('A')
      const canceller = stage.canceller()
      const begin = [() => stage.advance(actor, point), () => stage.advance(canceller.actor, other)]
      for (const step of isFirst ? begin.toReversed() : begin) await step()
      await stage.advance(isFirst ? canceller.actor : actor, null)
      await stage.finish(actor, canceller.actor)
      const end = canceller.found.refused ? 'refused' : 'taken'
      played.ends[end] = (played.ends[end] ?? 0) + 1
      return canceller.actor.passed
    })
  for (const other of [...(await cancelAt(null, false)), null])
    for (const isFirst of [false, true]) await cancelAt(other, isFirst)
}

/**
 * A leader of the intake is frozen at each of its points until its lease has ended and another one has led to each of its own in
 * turn; then both go on. Had it been killed in place of that, all jobs must have their turns without it: that is judged before.
 * Returns the points of one alone.
 */
export const playLeaders = async ({ note, play }: Orders): Promise<readonly string[]> => {
  const freezeAt = (point: string | null, other: string | null) =>
    play({ runs: 0 }, async (stage) => {
      const [leader, next] = [stage.leader('A'), stage.leader('B')]
      stage.send()
      stage.send()
      await stage.advance(leader, point)
      stage.send()
      await stage.endIntakeLease()
      await stage.advance(next, other)
      if (other === null) note([...stage.steps, 'and the first is killed'], await stage.judgeTurns())
      await stage.finish(leader, next)
      // what the frozen one has taken too late is the next leader's
      await stage.endIntakeLease()
      await stage.finish(stage.leader('A'))
      note(stage.steps, await stage.judgeTurns())
      await stage.advance(stage.worker('A').actor, null)
      return { leader: leader.passed, next: next.passed }
    })
  const alone = await freezeAt(null, null)
  for (const point of alone.leader) {
    const { next } = await freezeAt(point, null)
    for (const other of next) await freezeAt(point, other)
  }
  return alone.leader
}
