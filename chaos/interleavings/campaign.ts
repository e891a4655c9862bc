import fc from 'fast-check'
import type { Database } from '../../src/infra/database/database.ts'
import { Violation } from './stage.ts'
import { createTape, faultKinds } from './tape.ts'
import { playTape } from './world.ts'

/** `seen`: what happened in them, and how often. */
export type Played = { sequences: number; seen: Record<string, number>; violation: string | null }

const tapes = fc.array(fc.tuple(fc.nat(9999), fc.nat(faultKinds - 1), fc.nat(2 ** 20)), {
  maxLength: 300,
  size: 'max',
})
/** A failure is shrunk by so many more sequences. */
const shrinks = 60

/** Plays sequences made from one seed; the first violation is shrunk and reported with the tape that replays it. */
export const playMany = async (
  database: Database,
  options: {
    seed: number
    sequences: number
    signal?: AbortSignal
    shrink?: boolean
    onPlayed?: (played: number) => void
  },
): Promise<Played> => {
  const { seed, sequences, signal, shrink = true } = options
  let [played, left] = [0, shrinks]
  const seen: Record<string, number> = {}
  // no power is cut here; with one statement at a time one connection does it all
  await database.query('SET synchronous_commit = off')
  const property = fc.asyncProperty(tapes, async (decisions) => {
    signal?.throwIfAborted()
    if (left < shrinks && --left < 0) return
    try {
      const stage = await playTape(database, createTape(decisions))
      if (left < shrinks) return
      played++
      for (const [what, count] of Object.entries(stage.seen)) seen[what] = (seen[what] ?? 0) + count
      options.onPlayed?.(played)
    } catch (error) {
      if (left === shrinks) left--
      throw error
    }
  })
  const details = await fc.check(property, { seed, numRuns: sequences, endOnFailure: !shrink })
  signal?.throwIfAborted()
  if (!details.failed) return { sequences: played, seen, violation: null }
  const { errorInstance, counterexample } = details
  const what = errorInstance instanceof Violation ? errorInstance.message : String(errorInstance)
  return {
    ...{ sequences: played, seen },
    violation: `${what}\nsequence ${details.numRuns} of seed ${seed}, shrunk to the tape ${JSON.stringify(counterexample?.[0])}`,
  }
}
