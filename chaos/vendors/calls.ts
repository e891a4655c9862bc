import { setMaxListeners } from 'node:events'
import { openDeadline } from '../../src/state/deadline.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { callWith } from '../../test/support/vendors.ts'
import { seededShare } from '../seeded-choice.ts'
import type { SuiteOptions } from '../suite.ts'
import { type BillingRecord, businesses, promptOf } from './billing-record.ts'
import { clocks, type Stage } from './stage.ts'

const inFlight = 32
/** What a call may take beside its deadline. */
const slackMs = 20_000
/** A call that has not ended by then never does. */
const stuckMs = 60_000

export type CallResults = { ends: Map<string, number>; times: number[]; failures: string[] }

export const runIdOf = (call: number): string => `call_${call}`

/** Asks `count` times over both runtimes, for both businesses; each call has to end in time, with an answer or a typed failure. */
export const callVendors = async (
  { runtimes, show }: Stage,
  billing: BillingRecord,
  count: number,
  { seed, say, signal }: SuiteOptions,
): Promise<CallResults> => {
  const ends = new Map<string, number>()
  const times: number[] = []
  const failures: string[] = []
  setMaxListeners(2 * inFlight, signal)

  const one = async (call: number): Promise<void> => {
    const business = businesses[Math.floor(call / 2) % 2] ?? 'alpha'
    const leaves = new AbortController()
    using within = openDeadline(stuckMs, signal)
    const fail = (what: string): void => {
      const met = (billing.byCall.get(call) ?? []).map(({ failure }) => failure?.name ?? 'good').join(', ')
      failures.push(`call ${call} ${what}; it met: ${met}`)
    }
    const startedAtMs = performance.now()
    const end = await callWith(
      runtimes[call % 2] as (typeof runtimes)[0],
      { role: 'planner' },
      {
        ask: { messages: [{ role: 'user', content: promptOf(call, business) }] },
        caller: { business_id: business, user_id: 'u1', run_id: runIdOf(call) },
        signal: AbortSignal.any([within.signal, leaves.signal]),
        onDelta() {
          // some callers do not wait for the end of an answer that stalls
          const isStalled = billing.byCall.get(call)?.at(-1)?.failure?.name === 'stall_after_first_chunk'
          if (isStalled && seededShare(seed, call, 'leaves') < 0.5) leaves.abort(new Error('the caller left'))
        },
      },
    ).catch((error: unknown) => error)
    signal.throwIfAborted()
    const ms = performance.now() - startedAtMs
    times.push(ms)
    show(end)
    const name = nameOf(end, leaves.signal)
    if (name === null) fail(within.signal.aborted ? 'is stuck' : `ended with ${String(end)}`)
    ends.set(name ?? 'untyped', (ends.get(name ?? 'untyped') ?? 0) + 1)
    if (ms > clocks.total_ms + slackMs) fail(`took ${Math.round(ms)} ms`)
  }

  let next = 1
  const lane = async (): Promise<void> => {
    while (next <= count) {
      const call = next++
      await one(call)
      if (call % 500 === 0) say(`${call} calls, ${failures.length} failures ${failures.at(-1) ?? ''}`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return { ends, times, failures }
}

/** How a call ended; null: neither with an answer nor with an error that says what it is. */
const nameOf = (end: unknown, left: AbortSignal): string | null => {
  if (left.aborted) return 'left by the caller'
  if (isMasonError(end))
    return end.code === 'no_model_available' || /^model_/.test(end.code) ? end.code : null
  return end instanceof Error ? null : 'answered'
}
