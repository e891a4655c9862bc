import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './runs.ts'

/** A span as it was sent; times in milliseconds since 1970, with fractions. */
export type SeenSpan = {
  name: string
  traceId: string
  spanId: string
  /** Empty: it has none. */
  parentSpanId: string
  kind: number
  beganAt: number
  endedAt: number
  attributes: Record<string, unknown>
  links: { traceId: string; spanId: string }[]
  /** 2: an error. */
  status: number
}

/** An OTLP/HTTP receiver on loopback, as a collector is. */
export type TraceCollector = AsyncDisposable & {
  url: string
  spans: SeenSpan[]
  /** Every body as it came, with its headers. */
  raw: string[]
  /** `hang`: takes requests and never answers. A number: the status it answers with. */
  behave(how: number | 'hang'): void
  /** Waits until there are so many spans like this, and gives them in the order of their beginning. */
  received(what: string, isOne: (span: SeenSpan) => boolean, count?: number): Promise<SeenSpan[]>
}

type Value = {
  stringValue?: string
  intValue?: number | string
  boolValue?: boolean
  arrayValue?: { values: Value[] }
}
type SentSpan = {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes?: { key: string; value: Value }[]
  links?: { traceId: string; spanId: string }[]
  status?: { code?: number }
}
type Sent = { resourceSpans: { scopeSpans: { spans: SentSpan[] }[] }[] }

const plainValue = ({ stringValue, intValue, boolValue, arrayValue }: Value): unknown =>
  stringValue ?? boolValue ?? arrayValue?.values.map(plainValue) ?? Number(intValue)

const seen = (span: SentSpan): SeenSpan => ({
  name: span.name,
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentSpanId ?? '',
  kind: span.kind,
  beganAt: Number(span.startTimeUnixNano) / 1e6,
  endedAt: Number(span.endTimeUnixNano) / 1e6,
  attributes: Object.fromEntries((span.attributes ?? []).map(({ key, value }) => [key, plainValue(value)])),
  links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
  status: span.status?.code ?? 0,
})

export const startTraceCollector = async (): Promise<TraceCollector> => {
  const spans: SeenSpan[] = []
  const raw: string[] = []
  const hanging = new Set<ServerResponse>()
  let how: number | 'hang' = 200
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const text = Buffer.concat(parts).toString('utf8')
    raw.push(`${request.url} ${JSON.stringify(request.headers)}\n${text}`)
    if (how === 'hang') return void hanging.add(response)
    if (how === 200)
      for (const { scopeSpans } of (JSON.parse(text) as Sent).resourceSpans)
        spans.push(...scopeSpans.flatMap((scope) => scope.spans.map(seen)))
    response.writeHead(how, { 'content-type': 'application/json' }).end('{}')
  }
  // one that hangs up in the middle has sent nothing
  const server = createServer((request, response) => void take(request, response).catch(() => {}))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    raw,
    behave(next) {
      how = next
    },
    received: (what, isOne, count = 1) =>
      until(
        `the collector has ${count} ${what}; it has ${spans.map(({ name }) => name).join(', ')}`,
        () => {
          const found = spans.filter(isOne).sort((a, b) => a.beganAt - b.beganAt)
          return found.length >= count && found
        },
        30_000,
      ),
    async [Symbol.asyncDispose]() {
      for (const response of hanging) response.destroy()
      server.closeAllConnections()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    },
  }
}
