const fates = ['fails', 'breaks off', 'answer lost', 'dies before', 'dies after'] as const
/** What becomes of a step. A transaction that breaks off was begun; `before` and `after` are those of the statement. */
export type Fate = 'goes' | (typeof fates)[number]
/** One step in six meets a fault. */
export const faultKinds = 30
export const fateOf = (fault: number): Fate => fates[fault - (faultKinds - fates.length)] ?? 'goes'

/** What decides one step: who takes it, what fault it meets, and what is chosen after it. */
export type Decision = readonly [who: number, fault: number, choices: number]

/** The decisions of one sequence; when they are used up, all goes well and in turn. */
export const createTape = (decisions: readonly Decision[]) => {
  let at = 0
  let rest = 0
  return {
    get isOver(): boolean {
      return at >= decisions.length
    },
    next(): Decision {
      const decision = decisions[at++] ?? [0, 0, 0]
      rest = decision[2]
      return decision
    },
    /** Chooses among so many. */
    choose(below: number): number {
      const chosen = rest % below
      rest = Math.floor(rest / below)
      return chosen
    },
  }
}
export type Tape = ReturnType<typeof createTape>
