import { createParser } from 'eventsource-parser'

/** Where Mason is, for products that only know its HTTP API. */
export type MasonServer = { url: string; token?: string | undefined }

export type Answer = { run_id: string; text: string; metadata: Record<string, unknown> }

type Run = {
  id: string
  status: string
  answer: string | null
  error: { message: string } | null
  metadata: Record<string, unknown>
}

type Init = { method?: string; body?: string; headers?: Record<string, string>; signal: AbortSignal }

export const call = async (mason: MasonServer, path: string, init: Init): Promise<Response> => {
  const headers = {
    ...init.headers,
    ...(mason.token && { Authorization: `Bearer ${mason.token}` }),
    ...(init.body ? { 'Content-Type': 'application/json' } : {}),
  }
  const response = await fetch(mason.url + path, { ...init, headers })
  if (response.ok) return response
  const { detail } = (await response.json().catch(() => ({}))) as { detail?: string }
  throw new Error(detail ?? `Mason answered ${response.status}`)
}

const answerOf = ({ id, status, answer, error, metadata }: Run): Answer => ({
  run_id: id,
  text: answer ?? error?.message ?? `The run was ${status}.`,
  metadata,
})

/** The answer of one run, once it has ended: its stream ends with `done`, which carries the whole run. */
export const answerTo = async (mason: MasonServer, runId: string, signal: AbortSignal): Promise<Answer> => {
  for await (const { event, data } of eventsOn(mason, `/v1/runs/${runId}/events`, signal))
    if (event === 'done') return answerOf(data as Run)
  throw new Error('the stream ended without an answer')
}

/** The answers of a conversation as its runs end. Its stream goes on until the signal aborts. */
export async function* answersIn(
  mason: MasonServer,
  sessionId: string,
  signal: AbortSignal,
): AsyncGenerator<Answer> {
  for await (const { event, data } of eventsOn(mason, `/v1/sessions/${sessionId}/events`, signal)) {
    const { run_id, status } = data as { run_id: string; status: string }
    if (event !== 'status' || !['completed', 'failed', 'cancelled'].includes(status)) continue
    yield answerOf((await (await call(mason, `/v1/runs/${run_id}`, { signal })).json()) as Run)
  }
}

type MasonEvent = { event: string | undefined; data: unknown }

async function* eventsOn(mason: MasonServer, path: string, signal: AbortSignal): AsyncGenerator<MasonEvent> {
  const { body } = await call(mason, path, { signal })
  if (body === null) return
  const ready: MasonEvent[] = []
  const parser = createParser({
    onEvent: ({ event, data }) => ready.push({ event, data: JSON.parse(data) as unknown }),
  })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* ready.splice(0)
  }
}
