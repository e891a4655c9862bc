import type { ModelReply, Outcome } from './ports.ts'

/**
 * Who looks on at the work on runs. He is told names, ids, counts and kinds, and nothing that a user, a model or a tool
 * said. Each piece of work is a span inside the piece it is done in; what it throws is noted by its code alone.
 */
export type Tracer = {
  /** A run was let in; `beganAtMs` is when it asked, in milliseconds since 1970. */
  accepted(run: AcceptedRun): void
  /** What one worker does on a run under one claim. */
  run<T>(about: RunWork, work: Work<RunFacts, T>): Promise<T>
  /** One visit of one node or tool. */
  visit<T>(about: VisitWork, work: Work<VisitFacts, T>): Promise<T>
  /** One call of a model, with all requests to vendors that it took. */
  model<T>(about: ModelWork, work: Work<ModelFacts, T>): Promise<T>
  /** One search of a user's memories. */
  retrieval<T>(work: Work<{ found: number }, T>): Promise<T>
  /** What is learned from a run after its end. */
  learning<T>(about: LearningWork, work: () => Promise<T>): Promise<T>
}

/** `note` says what is known of the piece by now; it may be called more than once. */
export type Work<Facts, T> = (note: (facts: Facts) => void) => Promise<T>

/** The way a run came in. `traceparent` as W3C writes it: the trace of whoever sent it. */
export type Entry =
  | { by: 'http'; route: string; beganAtMs: number; traceparent?: string | undefined }
  | { by: 'queue'; beganAtMs: number }
  | { by: 'call'; beganAtMs: number }

type RunIds = { run_id: string; business_id: string; session_id: string; turn: number }
/** `replayed`: its key made it before. */
export type AcceptedRun = RunIds & { entry: Entry; replayed: boolean }
/** `claims`: claims without a new action, this one included. */
export type RunWork = RunIds & { epoch: number; claims: number; worker_id: string }
export type RunFacts = { left: string; outcome: Outcome | null }
export type VisitWork = { name: string; kind: 'node' | 'tool'; call: number | null }
/** `code`: of the fault that its action tells. */
export type VisitFacts = { action_id: number | null; code: string | null; waits: boolean }
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
export type LearningWork = { run_id: string; business_id: string; tries: number }

const unheard = (): void => {}

/** Nobody looks on. */
export const noTracer: Tracer = {
  accepted: unheard,
  run: (_, work) => work(unheard),
  visit: (_, work) => work(unheard),
  model: (_, work) => work(unheard),
  retrieval: (work) => work(unheard),
  learning: (_, work) => work(),
}
