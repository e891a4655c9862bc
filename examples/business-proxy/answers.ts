import { createParser } from 'eventsource-parser'

/** Where Mason is, for products that only know its HTTP API. */
export type MasonServer = { url: string; token?: string | undefined }

export type Answer = { run_id: string; status: string; text: string; metadata: Record<string, unknown> }

export const headersOf = ({ token }: MasonServer): Record<string, string> =>
  token ? { Authorization: `Bearer ${token}` } : {}

type EndedRun = {
  id: string
  status: string
  answer: string | null
  error: { message: string } | null
  metadata: Record<string, unknown>
}

const answerOf = (run: EndedRun): Answer => ({
  run_id: run.id,
  status: run.status,
  text: run.answer ?? run.error?.message ?? `The run was ${run.status}.`,
  metadata: run.metadata,
})

/** The answers on a stream of events, one for each `done`: of one run, or of all runs of a session. */
export async function* answersOn(
  server: MasonServer,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<Answer> {
  const response = await fetch(server.url + path, {
    headers: { ...headersOf(server), Accept: 'text/event-stream' },
    signal,
  })
  if (!response.ok || response.body === null) throw new Error(`Mason answered ${response.status} for ${path}`)
  const ready: Answer[] = []
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === 'done') ready.push(answerOf(JSON.parse(data) as EndedRun))
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* ready.splice(0)
  }
}
