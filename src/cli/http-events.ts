import { setTimeout as sleep } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { RunEvent } from '../state/run-view.ts'
import type { HttpClient } from './http-client.ts'

/** The server sends a comment every 15 s, so a longer silence means that the connection is lost. */
const silenceMs = 45_000
const reconnectTimeoutMs = 60_000

const eventNames: ReadonlySet<string> = new Set<RunEvent['event']>([
  'action',
  'status',
  'todos',
  'input_required',
  'delta',
  'done',
])

/**
 * The events of a run over as many connections as needed, each action once. Throws the last error after a minute without
 * a connection, or at once when the server refuses.
 */
export async function* streamHttpEvents(
  http: HttpClient,
  runId: string,
  note: (line: string) => void,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  let last = 0
  let disconnectedAt: number | null = null
  for (let tries = 0; ; tries++) {
    try {
      for await (const event of readConnection(http, `/v1/runs/${runId}/events`, last, signal)) {
        if (disconnectedAt !== null) note('reconnected')
        disconnectedAt = null
        tries = 0
        if (event.event === 'action') {
          if (event.id <= last) continue
          last = event.id
        }
        yield event
        if (event.event === 'done') return
      }
    } catch (error) {
      signal.throwIfAborted()
      const since = disconnectedAt ?? performance.now()
      if (!http.isTransient(error) && !(error instanceof ConnectionLostError)) throw error
      if (performance.now() - since > reconnectTimeoutMs) throw error
    }
    if (disconnectedAt === null) note('connection lost, reconnecting …')
    disconnectedAt ??= performance.now()
    await sleep(Math.min(250 * 2 ** tries, 5_000), undefined, { signal })
  }
}

/** The connection closed early or went silent. */
class ConnectionLostError extends Error {}

async function* readConnection(
  http: HttpClient,
  path: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(new ConnectionLostError('the server went silent')), silenceMs)
  try {
    const { body } = await http.get(
      path,
      { Accept: 'text/event-stream', ...(after > 0 ? { 'Last-Event-ID': String(after) } : {}) },
      AbortSignal.any([signal, silence.signal]),
    )
    if (body === null) return
    const messages = body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream({ onComment: () => timer.refresh() }))
      .getReader()
    const readNext = () =>
      messages.read().catch((error: unknown) => {
        throw new ConnectionLostError('the connection closed early', { cause: error })
      })
    for (let next = await readNext(); !next.done; next = await readNext()) {
      timer.refresh()
      const { event, id, data } = next.value
      if (event && eventNames.has(event)) yield toEvent(event, id, data)
    }
  } finally {
    clearTimeout(timer)
    silence.abort()
  }
}

const toEvent = (event: string, id: string | undefined, data: string): RunEvent =>
  ({ event, ...(id ? { id: Number(id) } : {}), data: JSON.parse(data) }) as RunEvent
