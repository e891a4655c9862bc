import { setImmediate as microtasksDone } from 'node:timers/promises'
import type { Database } from '../../src/infra/database/database.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { Sql, SqlValues } from '../../src/state/ports/sql.ts'
import { brokenLaw, follows } from './compare.ts'
import { emptyProtocol, type ProtocolState, readProtocol } from './state.ts'
import { type Fate, fateOf, type Tape } from './tape.ts'

/** One who takes part: a process of a worker, the API, the relay … A dead one is started again under a new name. */
export type Actor = { name: string; dead: boolean; restart: () => void }

/** What an actor is doing: each of its statements may leave the state as it is or do one of these moves. */
type Operation = {
  name: string
  moves: (state: ProtocolState, seen: ProtocolState) => (ProtocolState | null)[]
  moved: number
}

type Gate = {
  actor: Actor
  what: string
  /** Not a step of its own but a reason to begin one; it cannot fail. */
  rests: boolean
  isReady(): boolean
  /** Does the step; gives what then tells the actor. */
  pass(fate: Fate): Promise<() => void>
  moves: Operation | null
}

export class Violation extends Error {}

const unavailable = () => new MasonError('database_unavailable', 'the test took the answer away')

/**
 * Lets one statement (or transaction) of one actor happen at a time, in the order and with the faults that the tape
 * says, and compares the database after each with what the model allows.
 */
export const createStage = (database: Database, tape: Tape) => {
  const gates: Gate[] = []
  const trace: string[] = []
  let state = emptyProtocol
  let violation: unknown = null
  /** How often each kind of thing happened; a campaign that never meets one of them proves nothing of it. */
  const seen: Record<string, number> = {}
  const note = (what: string): void => {
    seen[what] = (seen[what] ?? 0) + 1
  }

  const fail = (what: string): void => {
    violation ??= new Violation(what)
  }

  const gate = <T>(
    actor: Actor,
    what: string,
    work: (broken: boolean) => Promise<T>,
    more: Partial<Gate> = {},
  ): Promise<T> =>
    new Promise((resolve, reject) => {
      if (actor.dead) return
      const pass = async (fate: Fate): Promise<() => void> => {
        const die = () => {
          actor.dead = true
          return actor.restart
        }
        if (fate === 'dies before') return die()
        if (fate === 'fails') return () => reject(unavailable())
        const done = await work(fate === 'breaks off').then(
          (value) => () => resolve(value),
          (error: unknown) => () => reject(error),
        )
        if (fate === 'dies after') return die()
        return fate === 'answer lost' ? () => reject(unavailable()) : done
      }
      gates.push({ actor, what, rests: false, isReady: () => true, moves: null, ...more, pass })
    })

  /** The database as an actor has it during one operation: every statement is a step. */
  const gated = (actor: Actor, operation: Operation): Database => {
    let statements = 0
    const step = <T>(work: (broken: boolean) => Promise<T>): Promise<T> =>
      gate(actor, `${operation.name}, ${++statements}`, work, { moves: operation })
    const query = <Row>(text: string, values?: SqlValues) =>
      step((broken) => (broken ? Promise.reject(unavailable()) : database.query<Row>(text, values)))
    return {
      kind: database.kind,
      query,
      transaction: (work) =>
        step((broken) => database.transaction((sql) => work(broken ? brittle(sql) : sql))),
      asBusiness: (business, work, options) =>
        step((broken) => database.asBusiness(business, (sql) => work(broken ? brittle(sql) : sql), options)),
      close: async () => {},
    }
  }

  const check = async (gate: Gate): Promise<void> => {
    const before = state
    state = await readProtocol(database)
    const law = brokenLaw(state, before)
    if (law) return fail(law)
    if (follows(state, before, before)) return
    const expected = gate.moves?.moves(before, state).filter((next) => next !== null) ?? []
    if (!expected.some((next) => follows(state, next, before)))
      return fail(`the model knows no such move: ${describe(before, state)}`)
    if (!gate.moves) return
    gate.moves.moved++
    note(gate.moves.name)
  }

  const step = async (candidates: Gate[]): Promise<void> => {
    const [who, fault] = tape.next()
    // those who are at something, and now and then one of those who could begin
    const busy = candidates.filter((one) => !one.rests)
    const resting = candidates.filter((one) => one.rests)
    const places = busy.length + Math.min(2, resting.length)
    const chosen = busy[who % places] ?? resting[Math.floor(who / places) % resting.length]
    if (!chosen) return
    gates.splice(gates.indexOf(chosen), 1)
    const fate = chosen.rests ? 'goes' : fateOf(fault)
    trace.push(`${chosen.actor.name}: ${chosen.what}${fate === 'goes' ? '' : ` [${fate}]`}`)
    const tell = await chosen.pass(fate)
    if (!chosen.rests) {
      note('steps')
      if (fate !== 'goes') note('faults')
      await check(chosen)
    }
    tell()
    // what the actor now does, up to its next step
    await microtasksDone()
    if (violation) throw violation
  }

  return {
    trace,
    seen,
    note,
    fail,
    get state(): ProtocolState {
      return state
    },
    choose: tape.choose,

    start(name: string, script: (actor: Actor) => Promise<void>): void {
      let lives = 0
      const live = (): void => {
        const actor: Actor = { name: `${name}${"'".repeat(lives++)}`, dead: false, restart: live }
        script(actor).catch((error: unknown) => {
          violation ??= error
        })
      }
      live()
    },

    /** Does one thing of the product's under the eyes of the model; `moved` tells how often it changed the state. */
    async perform<T>(
      actor: Actor,
      name: string,
      moves: Operation['moves'],
      work: (database: Database, operation: { moved: number }) => Promise<T>,
    ): Promise<T> {
      const operation = { name, moves, moved: 0 }
      return work(gated(actor, operation), operation)
    },

    /** A step outside the database, such as a call of a provider; it may get lost like any other. */
    outside: <T>(actor: Actor, what: string, work: () => T): Promise<T> =>
      gate(actor, what, async () => work()),

    /** Waits for its turn to begin something; `first` is done on the way, without a fault. */
    rest: (actor: Actor, what: string, isReady: () => boolean, first = async () => {}): Promise<void> =>
      gate(actor, what, first, { rests: true, isReady }),

    /** A change that the test itself makes, such as letting time pass. */
    async meddle(change: (sql: Sql) => Promise<unknown>): Promise<void> {
      await change(database)
      state = await readProtocol(database)
    },

    /** Plays until the tape is used up. */
    async play(): Promise<void> {
      await microtasksDone()
      while (!tape.isOver) {
        const ready = gates.filter((one) => !one.actor.dead && one.isReady())
        if (ready.length === 0) return
        await step(ready)
      }
    },

    /** Lets everybody finish what they are at; of those at rest only those named begin something, once. */
    async settle(wake: readonly string[] = [], always: readonly string[] = []): Promise<void> {
      const woken = new Set(gates.filter(({ what }) => wake.includes(what)))
      for (;;) {
        const ready = gates.filter(
          (one) =>
            !one.actor.dead && one.isReady() && (!one.rests || woken.has(one) || always.includes(one.what)),
        )
        if (ready.length === 0) return
        await step(ready)
      }
    },
  }
}

export type Stage = ReturnType<typeof createStage>

/** A transaction whose connection breaks after its first statement. */
const brittle = (sql: Sql): Sql => ({
  async query<Row>(text: string, values?: SqlValues) {
    await sql.query<Row>(text, values)
    throw unavailable()
  },
})

const describe = (before: ProtocolState, after: ProtocolState): string => {
  const lines: string[] = []
  for (const part of Object.keys(after) as (keyof ProtocolState)[]) {
    const [was, is] = [JSON.stringify(before[part]), JSON.stringify(after[part])]
    if (was !== is) lines.push(`${part}\n  was ${was}\n  is  ${is}`)
  }
  return lines.join('\n')
}
