import type { RunEvent } from '../state/run-view.ts'
import { sleep } from '../state/sleep.ts'
import { ClientError, isTransient } from './client-error.ts'
import { computeDelayMs, type Http, type HttpQuery } from './http.ts'
import { parseEventStream } from './sse.ts'

/** What is followed: one run until it has ended, or a whole conversation until the signal aborts. */
export type EventSource = { run_id: string } | { session_id: string }

/** How events are followed. */
export type FollowOptions = {
  /** The id of the last action that is known already; 0: from the start. */
  after?: number | undefined
  /** Ends the iteration with its reason. */
  signal?: AbortSignal | undefined
  /** Called when a connection was lost, and when another one brings events. */
  onConnection?: ((state: 'lost' | 'reconnected') => void) | undefined
  /** Milliseconds without a connection after which the error is thrown (absent: 5 minutes). */
  reconnectMs?: number | undefined
}

/** The server sends a comment every 15 s, so a longer silence means that the connection is lost. */
const silenceMs = 45_000
const defaultReconnectMs = 300_000

const eventNames: ReadonlySet<string> = new Set<RunEvent['event']>([
  'action',
  'status',
  'todos',
  'input_required',
  'consent_required',
  'delta',
  'done',
])

/** The path of a stream of events. */
const toEventsPath = (source: EventSource): string =>
  'run_id' in source
    ? `/v1/runs/${encodeURIComponent(source.run_id)}/events`
    : `/v1/sessions/${encodeURIComponent(source.session_id)}/events`

/**
 * The events over as many connections as needed: each action exactly once and in order; snapshots come again with each
 * connection. Of a run they end with `done`. Throws at once where the server refuses.
 */
export async function* streamEvents(
  http: Http,
  query: HttpQuery,
  source: EventSource,
  { after = 0, signal, onConnection, reconnectMs = defaultReconnectMs }: FollowOptions = {},
): AsyncGenerator<RunEvent> {
  let last = after
  let disconnectedAt: number | null = null
  let failure: unknown
  for (let tries = 0; ; tries++) {
    try {
      for await (const event of readConnection(http, query, toEventsPath(source), last, signal)) {
        if (disconnectedAt !== null) onConnection?.('reconnected')
        disconnectedAt = null
        tries = 0
        if (event.event === 'action') {
          if (event.id <= last) continue
          last = event.id
        }
        yield event
        if (event.event === 'done' && 'run_id' in source) return
      }
      failure = new ClientError('server_unreachable', `the stream of ${http.base} ended early`)
    } catch (error) {
      signal?.throwIfAborted()
      if (!isTransient(error)) throw error
      failure = error
    }
    if (disconnectedAt === null) onConnection?.('lost')
    disconnectedAt ??= performance.now()
    if (performance.now() - disconnectedAt > reconnectMs) throw failure
    await sleep(Math.min(computeDelayMs(tries, failure), 5_000), signal)
  }
}

async function* readConnection(
  http: Http,
  query: HttpQuery,
  path: string,
  after: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<RunEvent> {
  const ended = new AbortController()
  const silent = (): void => ended.abort(new Error('the server went silent'))
  let timer = setTimeout(silent, silenceMs)
  try {
    const { body } = await http.call('GET', path, {
      query,
      headers: { Accept: 'text/event-stream', ...(after > 0 && { 'Last-Event-ID': String(after) }) },
      signal: signal ? AbortSignal.any([signal, ended.signal]) : ended.signal,
      timeoutMs: null,
    })
    if (body === null) return
    const messages = parseEventStream(body, () => {
      clearTimeout(timer)
      timer = setTimeout(silent, silenceMs)
    })
    for await (const { event, id, data } of messages)
      if (eventNames.has(event))
        yield { event, ...(id !== null && { id: Number(id) }), data: JSON.parse(data) } as RunEvent
  } catch (error) {
    signal?.throwIfAborted()
    throw error instanceof ClientError
      ? error
      : new ClientError('server_unreachable', `the connection to ${http.base} was lost`, { cause: error })
  } finally {
    clearTimeout(timer)
    ended.abort()
  }
}
