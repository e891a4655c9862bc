import type { RunRequest } from '../state/run-request.ts'
import type { RunEvent } from '../state/run-view.ts'
import type { Json } from '../state/runtime-state.ts'

/** A run that can be watched and steered, in this process or over HTTP. */
export type Followed = {
  run: { id: string; session_id: string; turn: number }
  /** From the first action on; each exactly once, ends after `done`. */
  events(signal: AbortSignal): AsyncIterable<RunEvent>
  /** A run that has ended already is left as it is. */
  cancel(reason: string): Promise<void>
  /** Throws `invalid_request` when the answer does not fit: it may be asked again. */
  answer(requestId: string, answer: Json): Promise<void>
}

/** Where runs are submitted to. */
export type Gateway = {
  submit(request: RunRequest): Promise<Followed>
  /** Whether the built-in offline model serves; null where that can't be known from here. */
  offline: boolean | null
  /** How somebody else can answer a question of this run, as a line for people. */
  howToAnswer(runId: string, requestId: string): string
  /** How to go on with the session, as a command. */
  howToGoOn(sessionId: string, userId: string): string
  close(): Promise<void>
}
