import type { Outcome } from '../outcome.ts'
import type { ModelReply } from './models.ts'

/**
 * Observes the work on runs. It gets names, ids, counts and kinds, and no text of a user, a model or a tool. Each unit of
 * work is a span inside the unit that it is part of; of an exception only its code is recorded.
 */
export type Tracer = {
  /** A run was admitted; `beganAtMs` is when it asked, in milliseconds since 1970. */
  accepted(run: AcceptedRun): void
  /** What one worker does on a run under one claim. */
  run<T>(about: RunWork, work: TracedWork<RunFacts, T>): Promise<T>
  /** One visit of one node or tool. */
  visit<T>(about: VisitWork, work: TracedWork<VisitFacts, T>): Promise<T>
  /** One call of a model, with all requests to vendors that it took. */
  model<T>(about: ModelWork, work: TracedWork<ModelFacts, T>): Promise<T>
  /** One search of a user's memories. */
  retrieval<T>(work: TracedWork<{ found: number }, T>): Promise<T>
  /** What is learned from a run after its end. */
  learning<T>(about: LearningWork, work: () => Promise<T>): Promise<T>
}

/** `note` records what is known of the work by now; it may be called more than once. */
export type TracedWork<Facts, T> = (note: (facts: Facts) => void) => Promise<T>

/** The way a run came in. `traceparent` as W3C writes it: the trace of its sender. */
export type RunEntry =
  | {
      by: 'http'
      route: string
      beganAtMs: number
      traceparent?: string | undefined
      /** The token that was sent. */
      token_id?: string | undefined
    }
  | { by: 'queue'; beganAtMs: number }
  | { by: 'call'; beganAtMs: number }

type RunIds = { run_id: string; business_id: string; session_id: string; turn: number }
/** `replayed`: its key made it before. */
export type AcceptedRun = RunIds & { entry: RunEntry; replayed: boolean }
/** `claims`: claims without a new action, this one included. */
export type RunWork = RunIds & { epoch: number; claims: number; worker_id: string }
/** How the work on a run ended. */
export type RunFacts = { exit: string; outcome: Outcome | null }
/** One visit of a node or tool; `id` is unique. */
export type VisitWork = { id: string; name: string; kind: 'node' | 'tool'; call: number | null }
/** The visit on whose behalf a model is asked; `tool` is null in the visit of a node. */
export type VisitNote = { id: string; tool: string | null }
/** `code`: of the error in its action. */
export type VisitFacts = { action_id: number | null; code: string | null; isWaiting: boolean }
/** One call of a model. */
export type ModelWork = {
  operation: 'chat' | 'embeddings' | 'rerank' | 'generate_content'
  role: string
  stream: boolean
  /** How many texts are embedded or ranked. */
  inputs: number
}
/** `tries`: requests to vendors, failed ones too. `model` is its alias, `upstream` the vendor's name of it. */
export type ModelFacts = {
  tries: number
  model?: string
  upstream?: string
  vendor?: string
  finish?: ModelReply['finish']
  usage?: {
    prompt_tokens: number
    completion_tokens: number
    cached_tokens: number
    reasoning_tokens: number
  }
}
/** Learning from one run. */
export type LearningWork = { run_id: string; business_id: string; tries: number }

const ignore = (): void => {}

/** Records nothing. */
export const noTracer: Tracer = {
  accepted: ignore,
  run: (_, work) => work(ignore),
  visit: (_, work) => work(ignore),
  model: (_, work) => work(ignore),
  retrieval: (work) => work(ignore),
  learning: (_, work) => work(),
}
