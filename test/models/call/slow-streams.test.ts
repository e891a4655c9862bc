import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Clock } from '../../../src/state/ports/clock.ts'
import { ask, never, openTestModels, quickRetry } from '../../support/models.ts'

/** A clock that goes on only when it is set forward. */
const createSetClock = (): Clock & { advance(ms: number): Promise<void> } => {
  let now = 0
  const sleepers = new Map<() => void, number>()
  return {
    now: () => new Date(now),
    monotonicMs: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const stop = () => reject(signal?.reason)
        signal?.addEventListener('abort', stop)
        sleepers.set(() => {
          signal?.removeEventListener('abort', stop)
          resolve()
        }, now + ms)
      }),
    async advance(ms) {
      now += ms
      for (const [wake, at] of sleepers) {
        if (at > now) continue
        sleepers.delete(wake)
        wake()
      }
      await nextTurn()
    },
  }
}

const event = (choice: object) => `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`
const token = (content: string) => event({ delta: { content } })
const begin = event({ delta: { role: 'assistant', content: '' } })
const sentence = token('A sentence of a model that thinks. '.repeat(8))
const finish = `${event({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`
const bytesOf = (text: string) => text.split('')
const many = (count: number, part: string) => Array.from({ length: count }, () => part)

/** How a call ends whose vendor sends a part after each `everyMs`, and after how many seconds. */
const receive = async (parts: readonly string[], everyMs: number, type = 'text/event-stream') => {
  const clock = createSetClock()
  const left = [...parts]
  // asked for a part once the one before was read
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const part = left.shift()
        if (part === undefined) return controller.close()
        await clock.advance(everyMs)
        controller.enqueue(new TextEncoder().encode(part))
      },
    },
    { highWaterMark: 0 },
  )
  const { models } = openTestModels({
    baseUrl: 'http://vendor.test/v1',
    clocks: { firstByteMs: 60_000, idleMs: 60_000, totalMs: 3_600_000 },
    retry: { ...quickRetry, attempts: 1 },
    clock,
    fetch: async () => new Response(body, { headers: { 'content-type': type } }),
  })
  const end = await models.call(ask(), never()).then(
    ({ text, tool_calls }) => text + tool_calls.map((call) => call.arguments).join(''),
    (error: { code: string; cause?: Error; message: string }) =>
      `${error.code}: ${error.cause?.message ?? error.message}`,
  )
  return { end, seconds: clock.monotonicMs() / 1000 }
}

const whole = JSON.stringify({
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hello, this is a whole answer.' },
      finish_reason: 'stop',
    },
  ],
})

test.each<[title: string, parts: string[], everyMs: number, says: RegExp, seconds: number]>([
  ['a byte each half second', bytesOf(begin + token('slow').repeat(99)), 500, /no content/, 60],
  ['a byte each half second of a whole body', bytesOf(whole), 500, /no content/, 60],
  ['comments before the first content', many(999, ': processing\n\n'), 5000, /no content/, 60],
  ['white space before a whole body', many(999, '\n'), 5000, /no content/, 60],
  [
    'a byte each half second after a first token',
    [token('a'), ...bytesOf(token('b').repeat(99))],
    500,
    /less than 5 bytes a second/,
    160,
  ],
  [
    'comments after a token',
    [token('a'), ...many(999, ': ping\n\n')],
    5000,
    /stopped sending for 60000 ms/,
    70,
  ],
  [
    'empty deltas after a token',
    [token('a'), ...many(999, token(''))],
    5000,
    /stopped sending for 60000 ms/,
    70,
  ],
])('a stream ends as a timeout that sends %s', async (_, parts, everyMs, says, seconds) => {
  const received = await receive(parts, everyMs)
  expect(received.end).toMatch(/^model_timeout/)
  expect(received.end).toMatch(says)
  expect(received.seconds).toBeLessThanOrEqual(seconds)
})

test.each<[title: string, parts: string[], everyMs: number, answer: string]>([
  [
    'a token each second, as a model on a CPU does',
    [begin, ...many(600, token('字')), finish],
    1000,
    '字'.repeat(600),
  ],
  ['a token each two seconds', [begin, ...many(300, token('a')), finish], 2000, 'a'.repeat(300)],
  [
    'a sentence each 50 seconds',
    [begin + sentence, ...many(8, sentence), finish],
    50_000,
    'A sentence of a model that thinks. '.repeat(72),
  ],
  [
    'the arguments of a call, a character a second',
    [
      event({ delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'find', arguments: '' } }] } }),
      ...bytesOf(JSON.stringify({ query: 'x'.repeat(200) })).map((text) =>
        event({ delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }),
      ),
      `${event({ delta: {}, finish_reason: 'tool_calls' })}data: [DONE]\n\n`,
    ],
    1000,
    JSON.stringify({ query: 'x'.repeat(200) }),
  ],
  [
    'one long event, a kilobyte a second',
    [...(token('y'.repeat(300_000)).match(/[\s\S]{1,1024}/g) ?? []), finish],
    1000,
    'y'.repeat(300_000),
  ],
])('a stream is read to its end that sends %s', async (_, parts, everyMs, answer) => {
  expect((await receive(parts, everyMs)).end).toBe(answer)
})
