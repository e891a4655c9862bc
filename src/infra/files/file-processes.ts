import { createWaitingLine } from '../waiting-line.ts'
import { type FileProcess, type Limits, openFileProcess } from './file-process.ts'

/** The process of one step of a business's run, in one of the places. `idle`: its step waits for something else. */
type Seat = { business: string; process: FileProcess; idle: boolean }
export type StepProcess = FileProcess & {
  /** No job will come for a while: whoever waits for a place may have this one. */
  rest(): void
}
type Step = { business: string; limits: Limits }

/**
 * Processes that open files, at most `count` at once. The turn is whose business has the fewest places, then whose was
 * longest without a turn, then who came first. A step keeps its process from job to job, but between two jobs it makes
 * room for another business whose turn it is: one job is what a business waits for, however many another has. A step that
 * waits for something else makes room for anyone. Limits of time begin with the job, not with the wait.
 */
export const createFileProcesses = (
  count: number,
  open: (limits: Limits) => FileProcess = openFileProcess,
) => {
  const held = new Map<string, number>()
  const lastTurn = new Map<string, number>()
  const resting = new Set<Seat>()
  const line = createWaitingLine<Step, Seat>()
  let taken = 0
  let leaving = 0
  let turns = 0

  type Ranked = Pick<Step, 'business'>
  /** Below 0: the turn of `a` comes first. As if a place of `without` were free. */
  const order = (a: Ranked, b: Ranked, without?: string): number => {
    const holds = ({ business }: Ranked): number => (held.get(business) ?? 0) - (business === without ? 1 : 0)
    const last = ({ business }: Ranked): number => lastTurn.get(business) ?? 0
    return holds(a) - holds(b) || last(a) - last(b)
  }
  const nextInLine = (without?: string) =>
    [...line.waiting].toSorted((a, b) => order(a.who, b.who, without))[0]

  const fill = (): void => {
    for (let next = nextInLine(); next && taken < count; next = nextInLine()) next.serve(sitDown(next.who))
    for (const seat of resting) {
      if (leaving >= line.waiting.size) return
      const next = nextInLine(seat.business)
      // what goes wrong while a process ends is its own step's to hear of, with its next job
      if (next && (seat.idle || order(next.who, seat, seat.business) < 0)) leave(seat).catch(() => {})
    }
  }

  const leave = async (seat: Seat): Promise<void> => {
    resting.delete(seat)
    leaving += 1
    try {
      await seat.process[Symbol.asyncDispose]()
    } finally {
      leaving -= 1
      taken -= 1
      const left = (held.get(seat.business) ?? 1) - 1
      if (left > 0) held.set(seat.business, left)
      else held.delete(seat.business)
      fill()
      if (!held.has(seat.business) && ![...line.waiting].some(({ who }) => who.business === seat.business))
        lastTurn.delete(seat.business)
    }
  }

  const sitDown = ({ business, limits }: Step): Seat => {
    taken += 1
    turns += 1
    held.set(business, (held.get(business) ?? 0) + 1)
    lastTurn.set(business, turns)
    return { business, process: open(limits), idle: false }
  }

  const seatFor = (step: Step, signal: AbortSignal): Promise<Seat> => {
    const seat = line.join(step, signal)
    fill()
    return seat
  }

  return {
    /** The process of one step. It takes a place with its first job, and gives it back when it is disposed of. */
    of(business: string, limits: Limits): StepProcess {
      let seat: Seat | null = null
      return {
        async ask(job, signal) {
          signal.throwIfAborted()
          const mine = seat && resting.delete(seat) ? seat : await seatFor({ business, limits }, signal)
          seat = mine
          mine.idle = false
          try {
            return await mine.process.ask(job, signal)
          } finally {
            resting.add(mine)
            fill()
          }
        },
        rest() {
          if (!seat || !resting.has(seat)) return
          seat.idle = true
          fill()
        },
        async [Symbol.asyncDispose]() {
          if (seat && resting.has(seat)) await leave(seat)
        },
      }
    },
  }
}
