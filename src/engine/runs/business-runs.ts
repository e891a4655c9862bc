import type { BlobContent } from '../../files/blobs/blob-content.ts'
import type { NamedFiles } from '../../files/uploads.ts'
import type { RunEntry } from '../../state/ports/tracer.ts'
import type { JobData } from '../../state/run-request.ts'
import type { RunEvent, RunPage, RunStatus, RunView } from '../../state/run-view.ts'
import type { Json, RuntimeState } from '../../state/runtime-state.ts'
import type { Admission } from './admission.ts'
import type { RunFilter } from './run-queries.ts'

/** What precedes and follows the admission of a job of one business: the checks of a new run, and whom it concerns. */
export type JobAdmissions = {
  check(request: JobData): Promise<NamedFiles>
  announce(admission: Admission, request: JobData): void
}

/** What a caller does with the runs of one business, by whatever protocol. Errors are MasonError; its code says which. */
export type BusinessRuns = {
  /** Durable once it resolves, also while the queue is down. `invalid_request` (detail.errors), `idempotency_conflict`, `session_of_another_user`, `too_many_requests` and `budget_exhausted` (detail.retry_after_s). `entry`: where it came from, for its trace. `run_id` only from queue jobs. */
  submit(
    request: JobData,
    key?: string,
    entry?: RunEntry,
  ): Promise<{ run: { id: string; session_id: string; turn: number; status: RunStatus }; replayed: boolean }>
  /** Resolves once the run is completed, failed, cancelled or waits for input. Accepts a run as `submit` returned it. */
  wait(run: string | { id: string; session_id: string }, signal: AbortSignal): Promise<RunView>
  /** Null: no such run. */
  run(runId: string): Promise<RunView | null>
  /** Members of `metadata` are found by their JSON where they are numbers, true, false or null. */
  runs(filter: Omit<RunFilter, 'edge'> & { count?: boolean }): Promise<RunPage>
  /** How many runs there are of these. @internal */
  countRuns(filter: Omit<RunFilter, 'limit' | 'cursor'>): Promise<number>
  /** The state up to the run's turn; large results inlined unless `inline` is false. Null: no such run. */
  state(runId: string, inline: boolean): Promise<RuntimeState | null>
  /** Null: no such run, or its session holds no such blob. */
  blob(runId: string, sha256: string): Promise<BlobContent | null>
  /** Admits a failed run again, as its session's next turn with the same request. `not_found`, `run_not_failed`, and what `submit` throws. */
  retry(runId: string, key?: string, entry?: RunEntry): ReturnType<BusinessRuns['submit']>
  /** `run_ended` for completed or failed ones; repeating it is fine. */
  cancel(runId: string, reason: string | undefined): Promise<RunView>
  /** `invalid_request` when the answer does not fit the schema, `input_answered`, `not_found`. A `key` that answered before changes nothing. */
  answer(runId: string, requestId: string, answer: Json, key?: string): Promise<RunView>
  /**
   * Events of one run (ends with `done`) or of a whole session (does not end by itself), after action `after`
   * (0: from the start): current snapshots first, then the missed actions, then live. Each action exactly once.
   */
  events(
    source: { run_id: string } | { session_id: string },
    after: number,
    signal: AbortSignal,
  ): AsyncIterable<RunEvent>
}
