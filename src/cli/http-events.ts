import { setTimeout as sleep } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import type { RunEvent } from '../state/run-view.ts'
import type { Http } from './http.ts'

/** The server sends a comment every 15 s: silence for longer means that the connection is gone. */
const silenceMs = 45_000
const patienceMs = 60_000

const names: ReadonlySet<string> = new Set<RunEvent['event']>([
  'action',
  'status',
  'todos',
  'input_required',
  'delta',
  'done',
])

/**
 * The events of a run over as many connections as it takes, each action once. Gives up with the last error after a
 * minute without any connection, or at once when the server refuses.
 */
export async function* followEvents(
  http: Http,
  runId: string,
  note: (line: string) => void,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  let last = 0
  let lostAt: number | null = null
  for (let tries = 0; ; tries++) {
    try {
      for await (const event of oneConnection(http, `/v1/runs/${runId}/events`, last, signal)) {
        if (lostAt !== null) note('connected again')
        lostAt = null
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
      const since = lostAt ?? performance.now()
      if (!http.isPassing(error) && !(error instanceof Silence)) throw error
      if (performance.now() - since > patienceMs) throw error
    }
    if (lostAt === null) note('the connection was lost; connecting again …')
    lostAt ??= performance.now()
    await sleep(Math.min(250 * 2 ** tries, 5_000), undefined, { signal })
  }
}

/** The connection broke off or fell silent. */
class Silence extends Error {}

async function* oneConnection(
  http: Http,
  path: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const gone = new AbortController()
  const timer = setTimeout(() => gone.abort(new Silence('nothing was heard any more')), silenceMs)
  try {
    const response = await http.get(
      path,
      { Accept: 'text/event-stream', ...(after > 0 ? { 'Last-Event-ID': String(after) } : {}) },
      AbortSignal.any([signal, gone.signal]),
    )
    const ready: RunEvent[] = []
    const parser = createParser({
      onEvent: ({ event, id, data }) => {
        if (event && names.has(event)) ready.push(toEvent(event, id, data))
      },
    })
    const decoder = new TextDecoder()
    for await (const chunk of chunksOf(response)) {
      timer.refresh()
      parser.feed(decoder.decode(chunk, { stream: true }))
      yield* ready.splice(0)
    }
  } finally {
    clearTimeout(timer)
    gone.abort()
  }
}

async function* chunksOf(response: Response): AsyncGenerator<Uint8Array> {
  if (response.body === null) return
  try {
    yield* response.body
  } catch (error) {
    throw new Silence('the connection broke off', { cause: error })
  }
}

const toEvent = (event: string, id: string | undefined, data: string): RunEvent =>
  ({ event, ...(id ? { id: Number(id) } : {}), data: JSON.parse(data) }) as RunEvent
