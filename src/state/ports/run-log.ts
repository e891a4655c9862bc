import type { Outage, OutageRecord } from '../outage.ts'
import type { OngoingWork, Outcome } from '../outcome.ts'
import type { OutputError } from '../output-fields.ts'
import type { Json, Usage } from '../runtime-state.ts'
import type { OpenTodo, TodoCounts } from '../todos.ts'
import type { EffectRequest, EffectResult } from './effects.ts'
import type { PersonAnswer, Question } from './questions.ts'
import type { RunWait, WaitOutcome, WaitRef, WaitState } from './waits.ts'

/** A call of the planner: the id of the planner's action and the index in its calls. */
export type CallRef = { plan_seq: number; index: number }

/** A question that a call waits on. */
export type OpenQuestion = { call: CallRef; question: Question }

/** One entry of the log as it goes to the database: texts are JSON, stored as they are. */
export type LogEntry = {
  seq: number
  /** Names this one attempt, so that a commit whose response was lost is recognized. */
  attempt_id: string
  /** The visit that it ends, how many milliseconds that took, and the hash of the messages it sent to a model first. */
  visit: { id: string; ms: number; prompt_sha256: string | null }
  body: string
  patch: string
  usage: Usage
  /** Milliseconds of work of the run so far. */
  worked_ms: number
  effect: EffectResult | null
}

/** What a run leaves for its caller. */
export type RunResult = {
  answer: string | null
  output_structure: Json
  error: Json
  /** Of the run's turn; absent where it was not known as the run ended. */
  goal?: string
  /** These are absent in results of earlier versions. */
  todos?: TodoCounts
  open_todos?: OpenTodo[]
  output_errors?: OutputError[]
}

/**
 * One claimed run as the graph sees its database. Everything is fenced by the claim's epoch and throws `lease_lost`
 * when another worker has the run.
 */
export type RunLog = {
  append(entry: LogEntry): Promise<void>
  finish(entry: LogEntry, outcome: Outcome, result: RunResult): Promise<void>
  /**
   * Parks the run until the first question has its answer or a wait has ended; `requeued`: one did meanwhile. This and
   * `requeue` throw `cancelled` (the message is the reason) when the run is to be cancelled: end it then.
   */
  park(questions: readonly OpenQuestion[], workedMs: number): Promise<'parked' | 'requeued'>
  requeue(runAt: string, workedMs: number): Promise<void>
  /** Queues the run for when a model may be available, at most `maxMs` from now; throws as `park` does. */
  waitForModel(outage: Outage, maxMs: number, workedMs: number): Promise<void>
  /** The tries for which no model was available; null when the run has gone on since. */
  readOutage(): Promise<OutageRecord | null>
  /**
   * Leaves the run to a worker of another version, which knows the run's next node; throws as `park` does. False: the
   * run waited long enough to conclude that there is none.
   */
  passToNewerWorker(workedMs: number): Promise<boolean>
  /**
   * The answer to the question this call asks, or null while there is none. Throws for a secret one that is not asked:
   * `secret_unreadable` where no executor of payments has published a key, `invalid_request` where it names no payment.
   */
  readAnswer(call: CallRef, question?: Pick<Question, 'secret' | 'payment_id'>): Promise<PersonAnswer | null>
  /** Starts the waits of a call from part `first` on, all or none, or reads those that are there; throws as `park` does. */
  startWaits(call: CallRef, first: number, requests: readonly RunWait[]): Promise<WaitState[]>
  /** Ends a wait with what a poll found; resolves with the outcome that counts. */
  endWait(wait: WaitRef, outcome: WaitOutcome): Promise<WaitOutcome>
  /** Has the job of a wait polled again in so many milliseconds. */
  delayPoll(wait: WaitRef, ms: number): Promise<void>
  /** Before a run ends whose calls may still wait: closes that; resolves with what goes on. */
  closeWaits(): Promise<OngoingWork>
  /** `error`: what an earlier send of it threw, for the operator where it stays unknown. */
  effect(
    call: CallRef,
    request: EffectRequest,
    signal: AbortSignal,
    options?: { error: string },
  ): Promise<EffectResult>
  /** Stores bytes by their content; resolves with their hash. */
  storeBlob(bytes: Uint8Array): Promise<string>
}
