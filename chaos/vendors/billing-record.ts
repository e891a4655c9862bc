import type { Usage } from '../../src/state/runtime-state.ts'
import type { FakeReply, FakeRequest, FakeResponder } from '../../test/support/fake-model/types.ts'
import { seededPick, seededShare } from '../seeded-choice.ts'
import { type VendorFailure, vendorFailures } from './failures.ts'

export const businesses = ['alpha', 'beta'] as const
export type Business = (typeof businesses)[number]

/** Calls from here on are runs of the graph, and meet no failures. */
export const firstRun = 1_000_000

/** A call's prompt names it and who pays, so that each request to a vendor is known to be of it. */
export const promptOf = (call: number, business: Business): string => `Call ${call} of ${business}.`

/** One request as its vendor has it in his book. */
export type BilledRequest = {
  call: number
  /** For whom it was made, by its prompt. */
  business: Business
  protocol: 'openai' | 'http'
  /** As it came, without `Bearer`. */
  secret: string
  upstream: string
  failure: VendorFailure | null
  request: FakeRequest
}

/** The last usage that a vendor reported; null where it reported none, or where its answer was given up before. */
export const readReportedUsage = ({ failure, request: { reportedUsage } }: BilledRequest): Usage | null => {
  // its one text is longer than an answer may have, and the usage follows it
  if (reportedUsage === null || failure?.name === 'huge_line') return null
  const count = (tokens: number | undefined): number => Math.max(0, tokens ?? 0)
  const [prompt_tokens, completion_tokens] = [
    count(reportedUsage.prompt_tokens),
    count(reportedUsage.completion_tokens),
  ]
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: count(reportedUsage.total_tokens) || prompt_tokens + completion_tokens,
  }
}

export type BillingRecord = {
  /** By call, in the order in which the vendors got them. */
  byCall: ReadonlyMap<number, readonly BilledRequest[]>
  all(): BilledRequest[]
  responderFor(protocol: BilledRequest['protocol']): FakeResponder
}

/**
 * What the vendors bill, all in one book. Most calls meet seeded failures now and then; every eighth is cursed: one
 * failure in nearly every reply.
 */
export const createBillingRecord = (seed: number): BillingRecord => {
  const byCall = new Map<number, BilledRequest[]>()
  return {
    byCall,
    all: () => [...byCall.values()].flat(),
    responderFor: (protocol) => (request) => {
      const { call, business } = callOf(request)
      const earlier = byCall.get(call) ?? []
      const failure = failureFor(seed, call, earlier.length)
      const secret = (request.headers.authorization ?? '').replace('Bearer ', '')
      const upstream = String(request.body.model)
      byCall.set(call, [...earlier, { call, business, protocol, secret, upstream, failure, request }])
      const reply = healthy(request, call, earlier.length)
      return failure === null ? reply : failure.spoil(reply, request)
    },
  }
}

const callOf = ({ messages }: FakeRequest): { call: number; business: Business } => {
  const found = /Call (\d+) of (\w+)\./.exec(JSON.stringify(messages))
  const business = businesses.find((name) => name === found?.[2])
  if (business === undefined) throw new Error('a model request that names no call')
  return { call: Number(found?.[1]), business }
}

const failureFor = (seed: number, call: number, nth: number): VendorFailure | null => {
  if (call >= firstRun) return null
  const cursed = call % 8 === 0
  if (seededShare(seed, call, nth, 'strikes') > (cursed ? 0.95 : 0.3)) return null
  return cursed
    ? seededPick(vendorFailures, seed, call, 'curse')
    : seededPick(vendorFailures, seed, call, nth, 'failure')
}

/** No two requests of a call are billed alike. */
const healthy = (_request: FakeRequest, call: number, nth: number): FakeReply => {
  const [prompt_tokens, completion_tokens] = [100 + (call % 900), 7 + nth]
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
  const text = `Call ${call} is done, all ø and 💩.`
  if (call >= firstRun || call % 2 === 0) return { text, usage }
  const calls = ['1 + 1', '2 + 2'].map((expression) => ({ name: 'calculate', arguments: { expression } }))
  return { text, tool_calls: calls, usage }
}
