import type { RunView } from '../../src/state/run-view.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import type { FuzzJob } from '../fuzz/jobs.ts'

/** What is attacked, and by what: each family is one file of generators. */
export const families = [
  'businesses',
  'bodies',
  'vendors',
  'files',
  'patterns',
  'prompts',
  'memory',
  'queue',
  'settings',
] as const
export type Family = (typeof families)[number]

/** Whose token a request carries. `mallory` and `flooder` have all roles of a business, `reader` and `submitter` one each. */
export type Caller = 'admin' | 'mallory' | 'flooder' | 'reader' | 'submitter' | 'stranger' | 'anonymous'

export type HttpAnswer = { status: number; headers: Record<string, unknown>; text: string; ms: number }

/** What is wrong with an outcome, or null. */
export type Verdict<Outcome> = (outcome: Outcome) => string | null

/**
 * One request over HTTP. `status`: those that are right, or any refusal, or all but errors of the server (`handled`); where a
 * vendor is called, its failure may be reported as one (`answered`).
 */
export type HttpInput = {
  kind: 'http'
  name: string
  as: Caller
  method: string
  path: string
  headers?: Record<string, string>
  body?: () => string | Buffer
  status: readonly number[] | 'refused' | 'handled' | 'answered'
  /** The field that a 422 names. */
  at?: string
  withinMs?: number
  /** The hostile answer that it calls for. */
  answer?: number
  holds?: Verdict<HttpAnswer>
}

/** A connection that misbehaves: a head, then the same piece again and again. It has to be answered or closed in time. */
export type SocketInput = {
  kind: 'socket'
  name: string
  head: string
  piece: Buffer
  everyMs: number
  pieces: number
  withinMs: number
}

export type PlayedReply = {
  text?: string
  tool_calls?: { name: string; arguments: unknown }[]
  fault?: { status: number; body: string }
}
/** What the scripted vendor says in the runs of one input, by role; the last reply is repeated. */
export type Play = Record<string, readonly PlayedReply[]>

/** Where a marker was seen in prompts: how often in all, and where outside of every fence. */
export type Sighting = { times: number; outside: string[] }

export type RunOutcome = {
  run: RunView
  state: RuntimeState | null
  sightings: Record<string, Sighting>
  memories: string[]
}

/** Runs that carry one or many inputs, each judged by itself; with `learned` also by what is remembered of the user. */
export type RunInput = {
  kind: 'run'
  name: string
  turns: readonly object[]
  play?: Play
  markers?: readonly string[]
  learned?: true
  /** Its runs end by then, counted from the first submission. */
  withinMs: number
  answer?: number
  parts: readonly { name: string; holds: Verdict<RunOutcome> }[]
}

export type JobInput = { kind: 'job'; name: string; job: FuzzJob }

export type Input = HttpInput | SocketInput | RunInput | JobInput

/** How many inputs this is. */
export const countOf = (input: Input): number => (input.kind === 'run' ? input.parts.length : 1)

/** What belongs to the business that is attacked, and the tokens and places the attackers have. */
export type Target = {
  url: string
  port: number
  tokens: Record<Caller, string>
  victim: {
    run: string
    session: string
    user: string
    memory: string
    blob: string
    key: string
    cursor: string
  }
  /** In every text of the victim, in no answer to anybody else. */
  secret: string
  /** Of the victim's vendor. */
  vendorKey: string
  /** The vendor of hostile answers: its address, and the id of its rows. */
  hostile: { url: string; vendor_id: string }
  document: unknown
}

export const json = (value: unknown) => (): string => JSON.stringify(value)
