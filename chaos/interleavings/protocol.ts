import { openStatuses } from '../../src/state/run-status.ts'
import type { ProtocolRun, ProtocolState } from './state.ts'

/**
 * The protocol as pure functions: what one statement makes of a state. Null where it must do nothing. Ids that the
 * database or the product chooses (wake-ups, settled attempts) are left `chosen` and compared as such.
 */
export const chosen = 0
export const chosenText = ''

export type Fence = { run_id: string; epoch: number }
type Next = ProtocolState | null

const openStatus = new Set<string>(openStatuses)
const isParked = (run: ProtocolRun): boolean => run.status === 'input_required' || run.status === 'waiting'

const runOf = (state: ProtocolState, id: string): ProtocolRun => {
  const run = state.runs[id]
  if (!run) throw new Error(`the model has no run ${id}`)
  return run
}

/** Whether this claim still has its run. */
export const isOurs = (state: ProtocolState, { run_id, epoch }: Fence): boolean => {
  const run = state.runs[run_id]
  return run?.status === 'running' && run.epoch === epoch
}

/** Runs that a worker could take and none has: the first open run of each session, when due. */
export const runnable = (state: ProtocolState): string[] =>
  Object.entries(state.runs)
    .filter(
      ([, run]) =>
        (run.status === 'queued' || run.status === 'running') &&
        run.due &&
        run.lease !== 'held' &&
        !Object.values(state.runs).some(
          (other) => other.session === run.session && other.turn < run.turn && openStatus.has(other.status),
        ),
    )
    .map(([id]) => id)

/** Runs the next claim may take, with so many at work at once. */
export const claimable = (state: ProtocolState, limit: number): string[] => {
  const working = Object.values(state.runs).filter((run) => run.status === 'running' && run.lease === 'held')
  return working.length >= limit ? [] : runnable(state)
}

const change = (state: ProtocolState, make: (next: ProtocolState) => void): ProtocolState => {
  const next = structuredClone(state)
  make(next)
  return next
}

const changeOurs = (
  state: ProtocolState,
  fence: Fence,
  make: (run: ProtocolRun, next: ProtocolState) => void,
): Next => (isOurs(state, fence) ? change(state, (next) => make(runOf(next, fence.run_id), next)) : null)

/** A run that is to be cancelled does not begin to wait. */
const changeWaiting: typeof changeOurs = (state, fence, make) =>
  state.runs[fence.run_id]?.cancelled ? null : changeOurs(state, fence, make)

const ring = (next: ProtocolState, run: string, due = true): void =>
  void next.wakeUps.push({ id: chosen, run, due })

const ringNext = (next: ProtocolState, ended: ProtocolRun): void => {
  const [first] = Object.entries(next.runs)
    .filter(([, run]) => run.session === ended.session && run.turn > ended.turn && run.status === 'queued')
    .sort(([, a], [, b]) => a.turn - b.turn)
  if (first) ring(next, first[0])
}

const hasAction = (state: ProtocolState, id: string): boolean => state.actions.some(({ run }) => run === id)

const append = (next: ProtocolState, id: string, attempt: string, epoch = runOf(next, id).epoch): void => {
  const run = runOf(next, id)
  const seq = run.next_seq ?? 0
  next.actions.push({ session: run.session, seq, run: id, epoch, attempt })
  run.next_seq = seq + 1
}

/** A queued or waiting run ends without a worker; one that has opened no turn is left to the next worker. */
const settle = (next: ProtocolState, id: string, status: string): void => {
  const run = runOf(next, id)
  if (run.status !== 'queued' && !isParked(run)) return
  if (run.next_seq !== null && !hasAction(next, id)) return
  run.epoch++
  if (run.next_seq !== null) append(next, id, chosenText)
  Object.assign(run, { status, lease: 'none', results: 1 })
  close(next, id)
  ringNext(next, run)
}

const isOpen = ({ status }: { status: string }): boolean => status === 'open' || status === 'late'

/** What a run still waits for that ends. */
const close = (next: ProtocolState, id: string): void => {
  for (const question of ofRun(next.questions, id)) if (isOpen(question)) question.status = 'answered'
  for (const wait of ofRun(next.waits, id))
    if (isOpen(wait)) Object.assign(wait, { status: 'cancelled', seen: true })
}

const ofRun = <Row>(rows: Record<string, Row>, id: string): Row[] =>
  Object.entries(rows).flatMap(([key, row]) => (key.startsWith(`${id}|`) ? [row] : []))

/** A parked run goes on; one that is not parked sees by itself what has ended. */
const wake = (next: ProtocolState, id: string): void => {
  const run = runOf(next, id)
  if (!isParked(run)) return
  run.status = 'queued'
  ring(next, id)
}

export type Appended = {
  seq: number
  attempt_id: string
  effect: { effect_id: string; response: string } | null
}

/** How each part of the protocol moves the state. */
export const moves = {
  admit: (state: ProtocolState, run: string, as: { session: string; key: string; hash: string }): Next =>
    state.keys[as.key]
      ? null
      : change(state, (next) => {
          const turns = Object.values(state.runs).filter(({ session }) => session === as.session)
          next.runs[run] = {
            ...{ session: as.session, turn: turns.length + 1, status: 'queued', epoch: 0, next_seq: null },
            ...{ stalls: 0, lease: 'none', cancelled: false, due: true, results: 0 },
          }
          next.keys[as.key] = { run, hash: as.hash }
          ring(next, run)
        }),

  claim: (state: ProtocolState, id: string, limit: number): Next =>
    claimable(state, limit).includes(id)
      ? change(state, (next) => {
          const run = runOf(next, id)
          const last = next.actions.filter(({ session }) => session === run.session).at(-1)?.seq ?? 0
          Object.assign(run, {
            status: 'running',
            epoch: run.epoch + 1,
            stalls: run.stalls + 1,
            lease: 'held',
          })
          run.next_seq ??= last + 1
          next.wakeUps = next.wakeUps.filter((wakeUp) => wakeUp.run !== id)
        })
      : null,

  append: (state: ProtocolState, fence: Fence, entry: Appended): Next =>
    runOf(state, fence.run_id).next_seq === entry.seq
      ? changeOurs(state, fence, (run, next) => {
          append(next, fence.run_id, entry.attempt_id)
          run.stalls = 0
          const effect = entry.effect && next.effects[entry.effect.effect_id]
          if (effect?.status === 'sent')
            Object.assign(effect, { status: 'succeeded', response: entry.effect?.response })
        })
      : null,

  finish: (state: ProtocolState, fence: Fence, entry: Appended, status: string): Next => {
    const next = moves.append(state, fence, { ...entry, effect: null })
    if (!next) return null
    const run = runOf(next, fence.run_id)
    Object.assign(run, { status, lease: 'none', results: 1 })
    ringNext(next, run)
    return next
  },

  park: (state: ProtocolState, fence: Fence, questions: readonly string[]): Next =>
    changeWaiting(state, fence, (run, next) => {
      const [first] = questions
      const missed = ofRun(next.waits, fence.run_id).filter((wait) => !isOpen(wait) && !wait.seen)
      const isAnswered = questions.some((key) =>
        ['answered', 'expired'].includes(next.questions[key]?.status ?? ''),
      )
      Object.assign(run, { status: first ? 'input_required' : 'waiting', stalls: 0, lease: 'none' })
      for (const wait of missed) wait.seen = true
      if (missed.length > 0 || isAnswered) wake(next, fence.run_id)
      else if (first) next.questions[first] ??= { status: 'open', request_id: chosenText }
    }),

  startWait: (state: ProtocolState, fence: Fence, key: string): Next =>
    changeWaiting(state, fence, (_, next) => {
      const wait = next.waits[key]
      if (!wait) next.waits[key] = { status: 'open', seen: false }
      else if (!isOpen(wait)) wait.seen = true
    }),

  endWait: (state: ProtocolState, key: string): Next =>
    state.waits[key] && isOpen(state.waits[key])
      ? change(state, (next) => {
          const id = key.split('|')[0] ?? ''
          next.waits[key] = { status: 'done', seen: isParked(runOf(next, id)) }
          wake(next, id)
        })
      : null,

  /** The reconciler: what has ended unseen, or is over its time. */
  wakeWaiting: (state: ProtocolState, what: 'ended' | 'late'): Next =>
    change(state, (next) => {
      const found = Object.entries(next.waits).filter(
        ([key, wait]) =>
          isParked(runOf(next, key.split('|')[0] ?? '')) &&
          (what === 'late' ? wait.status === 'late' : !isOpen(wait) && !wait.seen),
      )
      for (const [key, wait] of found) {
        if (what === 'late') wait.status = 'expired'
        wait.seen = true
        wake(next, key.split('|')[0] ?? '')
      }
    }),

  closeWaits: (state: ProtocolState, fence: Fence): Next =>
    changeOurs(state, fence, (_, next) => close(next, fence.run_id)),

  requeue: (state: ProtocolState, fence: Fence): Next =>
    changeWaiting(state, fence, (run, next) => {
      Object.assign(run, { status: 'queued', stalls: 0, lease: 'none', due: false })
      ring(next, fence.run_id, false)
    }),

  waitForModel: (state: ProtocolState, fence: Fence): Next =>
    changeWaiting(state, fence, (run, next) => {
      Object.assign(run, { status: 'queued', stalls: Math.max(run.stalls - 1, 0), lease: 'none', due: false })
      ring(next, fence.run_id, false)
    }),

  handBack: (state: ProtocolState, fence: Fence): Next =>
    changeOurs(state, fence, (run, next) => {
      Object.assign(run, { status: 'queued', stalls: Math.max(run.stalls - 1, 0), lease: 'none' })
      ring(next, fence.run_id)
      if (run.cancelled) settle(next, fence.run_id, 'cancelled')
    }),

  giveUp: (state: ProtocolState, fence: Fence): Next =>
    changeOurs(state, fence, (run, next) => {
      // a turn that no worker has opened is opened first
      if (!hasAction(next, fence.run_id)) append(next, fence.run_id, chosenText, run.epoch + 1)
      Object.assign(run, { status: 'queued', lease: 'none' })
      settle(next, fence.run_id, 'failed')
    }),

  cancel: (state: ProtocolState, id: string): Next =>
    openStatus.has(runOf(state, id).status)
      ? change(state, (next) => {
          runOf(next, id).cancelled = true
          settle(next, id, 'cancelled')
        })
      : null,

  answer: (state: ProtocolState, question: string): Next => {
    const id = question.split('|')[0] ?? ''
    if (state.questions[question]?.status !== 'open' || !openStatus.has(runOf(state, id).status)) return null
    return change(state, (next) => {
      const open = next.questions[question]
      if (open) open.status = 'answered'
      wake(next, id)
    })
  },

  expireQuestions: (state: ProtocolState): Next =>
    change(state, (next) => {
      for (const [key, question] of Object.entries(next.questions)) {
        const id = key.split('|')[0] ?? ''
        if (question.status !== 'late' || !openStatus.has(runOf(next, id).status)) continue
        question.status = 'expired'
        wake(next, id)
      }
    }),

  intend: (state: ProtocolState, fence: Fence, effect: string, request: string): Next =>
    state.effects[effect]
      ? null
      : changeOurs(state, fence, (_, next) => {
          next.effects[effect] = { status: 'intent', sends: 0, request, response: null }
        }),

  /** `sent`: bytes may leave from now on. `unknown`: an operator is to say. `intent`: they said that it did not take place. */
  effect: (state: ProtocolState, fence: Fence, id: string, to: 'sent' | 'unknown' | 'intent'): Next => {
    const from = { sent: ['intent', 'sent'], unknown: ['sent'], intent: ['unknown'] }[to]
    if (!from.includes(state.effects[id]?.status ?? '')) return null
    return changeOurs(state, fence, (_, next) => {
      const effect = next.effects[id]
      if (effect) Object.assign(effect, { status: to, sends: effect.sends + (to === 'sent' ? 1 : 0) })
    })
  },

  /** Wake-ups that the queue has taken. */
  relayed: (state: ProtocolState, wakeUps: readonly number[]): Next =>
    change(state, (next) => {
      next.wakeUps = next.wakeUps.filter(({ id }) => !wakeUps.includes(id))
    }),
}
