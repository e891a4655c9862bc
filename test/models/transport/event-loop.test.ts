// tier: all

import { beforeAll, describe, expect, test } from 'vitest'
import { builtInFormats } from '../../../src/features/response-formats/built-in/built-in-formats.ts'
import type { Egress } from '../../../src/infra/egress/egress-port.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { createOpenAIProvider } from '../../../src/models/providers/openai/openai-provider.ts'
import type { FormatInput } from '../../../src/models/schemas/response-format.ts'
import { askOf, keyOf, modelOf } from '../../support/http-call.ts'
import { measureLongestTurn, measureTurnLimit } from '../../support/longest-turn.ts'
import { createCountingClock, never } from '../../support/models.ts'
import { responseFormats } from '../../support/response-formats.ts'

/** `isRead`: its formats differ in what they make of it; any other body is the same for all. */
type Body = { type: string; status?: number; isRead?: true; chunks(): Iterable<string> }

type Answer = Omit<Body, 'chunks'> & { bytes: readonly Uint8Array[] }
const toAnswer = ({ chunks, ...body }: Body): Answer => ({
  ...body,
  bytes: [...chunks()].map((chunk) => Buffer.from(chunk)),
})

/** An answer whose bytes are all there already: no wait for the network ends a turn. */
const answerWith = ({ type, status = 200, bytes }: Answer): Egress => ({
  request: async () => {
    const parts = bytes[Symbol.iterator]()
    return {
      status,
      headers: { get: (name) => (name === 'content-type' ? type : null) },
      body: {
        read: async () => {
          const { value, done } = parts.next()
          return done ? null : value
        },
        cancel: () => {},
      },
    }
  },
  [Symbol.asyncDispose]: async () => {},
})

const chunkLength = 64 * 1024
function* cut(text: string): Iterable<string> {
  for (let at = 0; at < text.length; at += chunkLength) yield text.slice(at, at + chunkLength)
}
function* repeatText(head: string, unit: string, count: number, tail: string): Iterable<string> {
  yield head
  const perChunk = Math.max(1, Math.floor(chunkLength / unit.length))
  for (let left = count; left > 0; left -= perChunk) yield unit.repeat(Math.min(left, perChunk))
  yield tail
}

const MiB = 1024 * 1024
const json = 'application/json'
const sse = 'text/event-stream'

/** The members that the paths of built-in formats begin with, all over one list, so that each path finds it. */
const inAllMembers = (list: string): string =>
  `{"choices":[{"message":{"content":${list},"tool_calls":${list}},"finish_reason":"stop"}],` +
  `"output":${list},"content":${list},"data":${list},"results":${list},"embeddings":${list},` +
  `"candidates":[{"content":{"parts":${list}}}],"message":{"content":"","tool_calls":${list}}}`

const call =
  '{"id":"c","type":"function_call","index":0,"name":"f","function":{"name":"f","arguments":"{}"},"arguments":"{}"},'
const toList = (unit: string, length: number): string =>
  `[${unit.repeat(Math.floor(length / unit.length)).slice(0, -1)}]`

const bodies: Record<string, Body> = {
  'small objects, 32 MiB': { type: json, chunks: () => repeatText('[{}', ',{}', 10 * MiB, ']') },
  'numbers, 10 MiB': {
    type: json,
    chunks: () => repeatText('{"data":[{"index":0,"embedding":[0.5', ',0.123456', 1.1 * MiB, ']}]}'),
  },
  'small objects where parts are, 2 MiB': {
    type: json,
    chunks: () => cut(inAllMembers(toList('{},', MiB / 4))),
  },
  'small objects where parts are, 50,000': {
    type: json,
    isRead: true,
    chunks: () => cut(inAllMembers(toList('{},', 16_000))),
  },
  'tool calls, 6000': {
    type: json,
    isRead: true,
    chunks: () => cut(inAllMembers(toList(call, call.length * 1500))),
  },
  'numbers, 1 MiB': {
    type: json,
    isRead: true,
    chunks: () => repeatText('{"data":[{"index":0,"embedding":[0.5', ',0.123456', MiB / 8, ']}]}'),
  },
  'one text, 30 MiB': {
    type: json,
    chunks: () =>
      repeatText('{"choices":[{"message":{"content":"', 'a', 30 * MiB, '"},"finish_reason":"stop"}]}'),
  },
  'one base64, 4 MiB': {
    type: json,
    chunks: () => repeatText('{"data":[{"b64_json":"', 'QUJD', MiB, '\\u0000"}]}'),
  },
  'nested lists, 10 MiB': { type: json, chunks: () => repeatText('', '[', 10 * MiB, '') },
  'nested lists, 500,000 and closed': {
    type: json,
    chunks: () => cut(`{"error":${'['.repeat(500_000)}${']'.repeat(500_000)}}`),
  },
  'line breaks, 10 MiB': { type: json, chunks: () => repeatText('{', '\r\n', 5 * MiB, '"a":1}') },
  'an error of 10 MiB': {
    type: json,
    chunks: () => repeatText('{"error":{"message":"', 'exceed ', 1.4 * MiB, '"}}'),
  },
  'an error of small objects, 2 MiB': {
    type: json,
    chunks: () => repeatText('{"error":{"detail":[{}', ',{"a":1}', 0.25 * MiB, ']}}'),
  },
  'a refusal of 30 MiB': {
    type: json,
    status: 400,
    chunks: () => repeatText('{"error":{"message":"', 'context length ', 2 * MiB, '"}}'),
  },
  'bytes, 30 MiB': { type: 'audio/mpeg', chunks: () => repeatText('', 'ID3\0', 7.5 * MiB, '') },
  'events, 30,000 small ones': {
    type: sse,
    chunks: () =>
      repeatText('', 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', 30_000, 'data: [DONE]\n\n'),
  },
  'events that have all members, 1000': {
    type: sse,
    isRead: true,
    chunks: () => repeatText('', `data: ${inAllMembers(`[${call.slice(0, -1)}]`)}\n\n`, 1000, ''),
  },
  'events of tool calls, 30,000 deltas': {
    type: sse,
    chunks: () =>
      repeatText(
        '',
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"1"}}]}}]}\n\n',
        30_000,
        'data: [DONE]\n\n',
      ),
  },
  'comments, 16 MiB': { type: sse, chunks: () => repeatText('', ': still here\n', 1.2 * MiB, '') },
  'carriage returns, 8 MiB': { type: sse, chunks: () => repeatText('data: a\r', '\r', 8 * MiB, '') },
  'data lines of one event, 7 MiB': { type: sse, chunks: () => repeatText('', 'data:a\n', MiB, '\n\n') },
  'an event of small objects, 7 MiB': {
    type: sse,
    chunks: () => repeatText('data: {"choices":[{}', ',{}', 2.2 * MiB, ']}\n\n'),
  },
  'one line that never ends, 30 MiB': { type: sse, chunks: () => repeatText('data: ', 'a', 30 * MiB, '') },
  'lines of JSON, 200,000': {
    type: 'application/x-ndjson',
    chunks: () => repeatText('{}\n', '{}\n', 200_000, ''),
  },
  'blank lines, 30 MiB': { type: sse, chunks: () => repeatText('', '\n', 30 * MiB, '') },
}

const openaiModel = (category: string) => ({ ...modelOf(null, 'http://vendor.example/v1'), category })
const formats: readonly FormatInput[] = builtInFormats()

/** Each way to read an answer: the protocol of its own, and each built-in format, whole and streamed. */
const readers = [
  ...['text', 'embedding'].map((category) => ({
    name: `openai ${category}`,
    model: openaiModel(category),
    stream: true,
  })),
  ...formats.map((format) => ({
    name: format.name,
    model: modelOf(format, 'http://vendor.example/v1'),
    stream: format.stream != null,
  })),
]

const send = async (body: Answer, { model, stream }: (typeof readers)[number]): Promise<void> => {
  const clock = createCountingClock()
  const egress = answerWith(body)
  const provider =
    model.format === null
      ? createOpenAIProvider({ egress, formats: responseFormats, clock, log: silentLog })
      : responseFormats.openProvider({ egress, clock })
  await provider.send(
    {
      model,
      key: keyOf(),
      ask: askOf({ stream: stream && body.type !== json, input: ['a'], query: 'a', prompt: 'a' }),
      endsAtMs: clock.monotonicMs() + 600_000,
      usedIds: [],
      onDelta: () => {},
    },
    never(),
  )
}

describe.skipIf(process.platform !== 'linux')(
  'no answer of a vendor blocks the event loop for more than 200 ms',
  () => {
    let maxTurnMs = 0
    beforeAll(async () => {
      maxTurnMs = measureTurnLimit()
      // what is loaded and compiled once is no part of an answer
      for (const reader of readers) await send({ type: json, bytes: [Buffer.from('{}')] }, reader)
    })

    test.each(Object.entries(bodies))(
      '%s',
      async (_, body) => {
        const turns: string[] = []
        const answer = toAnswer(body)
        for (const reader of body.isRead ? readers : [...readers.slice(0, 1), ...readers.slice(2, 3)]) {
          const ms = await measureLongestTurn(() => send(answer, reader))
          if (ms > maxTurnMs) turns.push(`${reader.name}: ${Math.round(ms)} ms`)
        }
        expect(turns).toEqual([])
      },
      120_000,
    )
  },
)
