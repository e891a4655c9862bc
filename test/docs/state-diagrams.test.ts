import { describe, expect, test } from 'vitest'
import { moves } from '../../chaos/interleavings/protocol.ts'
import { emptyProtocol, type ProtocolState } from '../../chaos/interleavings/state.ts'
import type { PaymentOperation } from '../../src/features/payments/executor/operations.ts'
import {
  type Decision,
  decideAnswer,
  decideReleased,
  decideUnknown,
  decideUnknownAnswer,
} from '../../src/features/payments/executor/payment-answers.ts'
import type { ClaimedPayment } from '../../src/features/payments/executor/work-queue.ts'
import type { ProviderAnswer } from '../../src/features/payments/providers/provider.ts'
import { readPage } from '../support/pages.ts'

/** The transitions of the diagram below a heading of ARCHITECTURE.md, as `from -> to`; `*` is the beginning or the end. */
const readDiagram = async (subject: string): Promise<string[]> => {
  const { text } = await readPage('ARCHITECTURE.md')
  const [, diagram] =
    text.split(`**${subject}** `)[1]?.match(/^[\s\S]*?```mermaid\nstateDiagram-v2\n([\s\S]*?)```/) ?? []
  if (!diagram) throw new Error(`ARCHITECTURE.md has no diagram of ${subject}`)
  const lines = diagram.trim().split('\n')
  const parsed = lines.map((line) => /^ *(\[\*\]|\w+) --> (\[\*\]|\w+)(?: : .+)?$/.exec(line))
  expect(lines.filter((_, at) => !parsed[at])).toEqual([])
  return parsed.map((found) => `${found?.[1]} -> ${found?.[2]}`.replaceAll('[*]', '*')).sort()
}

/** States that nothing leaves lead to the end of a diagram. */
const withEnds = (found: ReadonlySet<string>): string[] => {
  const left = new Set([...found].map((line) => line.split(' -> ')[0]))
  const reached = new Set([...found].map((line) => line.split(' -> ')[1]))
  const ends = [...reached].filter((state) => !left.has(state)).map((state) => `${state} -> *`)
  return [...found, ...ends].sort()
}

const fence = (state: ProtocolState) => ({ run_id: 'r', epoch: state.runs.r?.epoch ?? 0 })
const [question, wait] = ['r|1|0', 'r|1|0|0']

/** What each part of the protocol, and time, can make of a state of one run with one question and one wait. */
const listNext = (state: ProtocolState): (ProtocolState | null)[] => {
  if (!state.runs.r) return [moves.admit(state, 'r', { session: 's', key: 'k', hash: 'h' })]
  const ours = fence(state)
  const entry = { seq: state.runs.r.next_seq ?? 0, attempt_id: 'a', effect: null }
  const pass = (make: (next: ProtocolState) => void): ProtocolState => {
    const next = structuredClone(state)
    make(next)
    return next
  }
  return [
    moves.claim(state, 'r', 1),
    moves.append(state, ours, entry),
    ...['completed', 'failed', 'cancelled'].map((status) => moves.finish(state, ours, entry, status)),
    moves.park(state, ours, []),
    moves.park(state, ours, [question]),
    moves.startWait(state, ours, wait),
    moves.endWait(state, wait),
    moves.wakeWaiting(state, 'ended'),
    moves.wakeWaiting(state, 'late'),
    moves.closeWaits(state, ours),
    moves.requeue(state, ours),
    moves.waitForModel(state, ours),
    moves.handBack(state, ours),
    moves.giveUp(state, ours),
    moves.cancel(state, 'r'),
    moves.answer(state, question),
    moves.expireQuestions(state),
    // time passes
    pass(({ runs }) =>
      Object.assign(runs.r ?? {}, { due: true, lease: runs.r?.lease === 'held' ? 'late' : 'none' }),
    ),
    pass(({ waits }) => waits[wait]?.status === 'open' && Object.assign(waits[wait], { status: 'late' })),
    pass(
      ({ questions }) =>
        questions[question]?.status === 'open' && Object.assign(questions[question], { status: 'late' }),
    ),
  ]
}

/** Two states in which the same can come next. */
const toKey = ({ runs: { r }, waits, questions, actions }: ProtocolState): string =>
  JSON.stringify([
    [r?.status, r?.lease, r?.cancelled, r?.due, r?.next_seq == null, actions.length > 0],
    [waits[wait], questions[question]?.status],
  ])

/** A wait whose time is over is open until the reconciler ends it. */
const toWaitStatus = ({ waits }: ProtocolState): string =>
  (waits[wait]?.status ?? '*').replace('late', 'open')

/** Each change of the status of the run, and of the wait, that the model of the protocol can make. */
const exploreProtocol = (): { run: Set<string>; wait: Set<string> } => {
  const found = { run: new Set<string>(), wait: new Set<string>() }
  const seen = new Set<string>()
  const open: ProtocolState[] = [emptyProtocol]
  for (let state = open.pop(); state; state = open.pop())
    for (const next of listNext(state)) {
      if (!next) continue
      const [from, to] = [state.runs.r?.status ?? '*', next.runs.r?.status ?? '*']
      if (from !== to) found.run.add(`${from} -> ${to}`)
      const [before, after] = [toWaitStatus(state), toWaitStatus(next)]
      if (before !== after) found.wait.add(`${before} -> ${after}`)
      if (seen.has(toKey(next))) continue
      seen.add(toKey(next))
      open.push(next)
    }
  return found
}

const amount = { currency: 'EUR', minor: 100 }
const aPayment: ClaimedPayment = {
  payment_id: 'p',
  tenant: 't',
  order_id: 'o',
  status: 'sent',
  version: '0.2',
  spend_id: 's',
  amount_minor: amount.minor,
  currency: amount.currency,
  payee: { id: null, name: 'shop' },
  provider_id: 'v',
  provider_ref: null,
  is_authorized: false,
  refunded_minor: 0,
  challenge: null,
  epoch: 1,
  tries: 0,
  silent_ms: 0,
}
const answers: readonly ProviderAnswer[] = [
  ...(['succeeded', 'authorized', 'voided', 'refunded'] as const).map((status) => ({
    status,
    provider_ref: 'ref',
    network_ref: null,
    amount,
  })),
  { status: 'declined', provider_ref: null, reason: 'no' },
  { status: 'pending', provider_ref: 'ref' },
  { status: 'challenge', provider_ref: 'ref', challenge: { type: 'otp', text: 'code?' } },
]
/** Each status, so that a new one does not compile here. */
const statuses: Record<ClaimedPayment['status'], true> = {
  reserved: true,
  sent: true,
  succeeded: true,
  declined: true,
  unknown: true,
  released: true,
}

/** Each change of a payment's status that an answer, a look-up, a webhook, an operator or a cancel can make. */
const explorePayments = (): Set<string> => {
  const found = new Set<string>()
  const note = (from: ClaimedPayment['status'], decision: Decision | null): void => {
    const to = decision?.from.includes(from) ? decision.status : undefined
    if (to && to !== from) found.add(`${from} -> ${to}`)
  }
  for (const status of Object.keys(statuses) as ClaimedPayment['status'][])
    for (const kind of ['authorize', 'capture', 'void', 'refund', 'answer'] as const)
      for (const capture of [true, false])
        for (const [age_ms, count] of [
          [0, 0],
          [3_600_000, 9],
        ] as const) {
          const payment = { ...aPayment, status, is_authorized: kind === 'capture' || kind === 'void' }
          const operation: PaymentOperation = {
            operation_id: 'op',
            order_id: 'o',
            kind,
            amount_minor: amount.minor,
            currency: amount.currency,
            capture,
            request: null,
            status: 'sent',
            age_ms,
            answers: count,
          }
          for (const answer of answers) note(status, decideAnswer(payment, operation, answer, 'lookup'))
          note(status, decideUnknown(payment, 'silence'))
          note(status, decideUnknownAnswer(payment, operation, 'silence'))
          note(status, decideReleased('op', { status: 'released' } as Parameters<typeof decideReleased>[1]))
        }
  return found
}

describe('the state diagrams of ARCHITECTURE.md', () => {
  test('a run changes its status as the model of the protocol does', async () => {
    // the reconciler fails a run that waited too long for its first worker, which is no move of the model
    const found = exploreProtocol().run.add('queued -> failed')
    expect(await readDiagram('A run')).toEqual(withEnds(found))
  })

  test('a wait changes its status as the model of the protocol does', async () => {
    expect(await readDiagram('A wait')).toEqual(withEnds(exploreProtocol().wait))
  })

  test('a payment changes its status as the decisions of its executor do', async () => {
    // made by statements: the reservation, the first send, and the end of an order that never became a reservation
    const found = explorePayments()
    for (const line of ['* -> reserved', 'reserved -> sent', '* -> declined', '* -> released'])
      found.add(line)
    expect(await readDiagram('A payment')).toEqual(withEnds(found))
  })
})
