import { MasonError } from '../../state/errors.ts'
import type { Outcome } from '../../state/outcome.ts'

/** Spans since this process started: `failed` were refused by the collector, `dropped` exceeded the queue. */
export type SpanCounts = { exported: number; failed: number; dropped: number }

/** The work that is waiting in the database, for all processes. Ages in seconds; 0 where nothing waits. */
export type Backlog = {
  queued: number
  running: number
  input_required: number
  workers: number
  outbox: number
  /** Runs that a worker could claim now. */
  ready: number
  oldest_ready_s: number
  /** Ended runs that nothing was learned from yet. */
  unlearned: number
  oldest_unlearned_s: number
}

/** A counter of what `read` counts by a label since the process began; null: this process counts nothing. */
type ReadCounter = {
  name: string
  help: string
  label: string
  read(): Readonly<Record<string, number>> | null
}
type TokenKind = 'prompt_tokens' | 'completion_tokens' | 'cached_tokens' | 'reasoning_tokens'

/**
 * What one process counts. Labels are words of the program, HTTP routes, and names that admins chose (vendors, models) or that
 * tools have: never text or ids of users.
 */
export type Metrics = {
  contentType: string
  /** Counts one response; `route` is the template and never the path, so that labels stay few. */
  request(route: string, method: string, status: number, ms: number): void
  /** Counts a run that ended. */
  runEnded(outcome: Outcome, ms: number): void
  /** How long a run was due before a worker claimed it for the first time. */
  runClaimed(waitedMs: number): void
  appended(ms: number): void
  leaseLost(): void
  requeued(): void
  /** Counts one call of a tool; `code` is that of its error, or null. */
  toolCalled(tool: string, ms: number, code: string | null): void
  /** Counts one request to a vendor; `code` is `ok` or that of its error. */
  modelRequest(
    about: { vendor: string; model: string; code: string },
    usage: Record<TokenKind, number>,
    ms: number,
  ): void
  fallback(): void
  keyPool(pool: { vendor: string; healthy: number; isLow: boolean }): void
  streams(open: number): void
  spans(counts: SpanCounts): void
  addCounter(counter: ReadCounter): void
  /** The runs that this process has; more than one permit may serve one run. */
  workerRuns(counts: { runs: number; working: number }): void
  /** Calls `set` before each scrape, to set what is not counted as it happens. */
  onScrape(set: () => void): void
  /** The text for a scrape. Without the backlog while it cannot be read. */
  text(): Promise<string>
}
/** The metrics of one process. `readBacklog` is called at each scrape. */
export type CreateMetrics = (readBacklog: () => Promise<Backlog>) => Metrics

const ignore = (): void => {}
/** Nothing is counted, without the feature for it. */
export const noMetrics: Metrics = {
  contentType: 'text/plain',
  request: ignore,
  runEnded: ignore,
  runClaimed: ignore,
  appended: ignore,
  leaseLost: ignore,
  requeued: ignore,
  toolCalled: ignore,
  modelRequest: ignore,
  fallback: ignore,
  keyPool: ignore,
  streams: ignore,
  spans: ignore,
  addCounter: ignore,
  workerRuns: ignore,
  onScrape: ignore,
  async text() {
    throw new MasonError('not_found', 'this server counts nothing', {
      remedy: 'run it with the feature that does',
    })
  },
}
