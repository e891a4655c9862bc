import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anthropicMessages } from '../../../../src/features/response-formats/built-in/anthropic-messages.ts'
import { builtInFormats } from '../../../../src/features/response-formats/built-in/built-in-formats.ts'
import { openaiChat } from '../../../../src/features/response-formats/built-in/openai-chat.ts'
import { compileFormat } from '../../../../src/features/response-formats/formats/format-compiler.ts'
import { parseEvents } from '../../../../src/features/response-formats/formats/format-test.ts'
import type { ReadableFormat } from '../../../../src/features/response-formats/formats/result-draft.ts'
import type { CanonicalResult } from '../../../../src/models/ports/model-ports.ts'
import {
  UnreadableResponseError,
  VendorReportedError,
} from '../../../../src/models/ports/unreadable-response.ts'
import type { Json } from '../../../../src/state/runtime-state.ts'
import { toFormatSamples } from '../built-in/samples/declared-samples.ts'
import { openaiChatSamples } from '../built-in/samples/openai-chat.ts'

const caught = (work: () => unknown): UnreadableResponseError => {
  try {
    work()
  } catch (error) {
    if (error instanceof UnreadableResponseError) return error
    throw error
  }
  throw new Error('it was read')
}
const text = (path: string, more: Partial<ReadableFormat> = {}): ReadableFormat => ({
  category: 'text',
  paths: { text: path },
  ...more,
})
const completion = (message: object, more: object = {}) => ({
  choices: [{ message, finish_reason: 'stop' }],
  ...more,
})
const chat = compileFormat(openaiChat)

describe('an answer that is not as the format says', () => {
  test('is refused with the path that found nothing and the place where it broke off', () => {
    const error = caught(() => chat.read({ choices: [{ msg: { content: 'hi' }, finish_reason: 'stop' }] }))
    expect(error.place).toBe('text')
    const plain = caught(() =>
      compileFormat(text('choices[0].message.content')).read({ choices: [{ msg: {} }] }),
    )
    expect(plain.message).toContain('there is no /choices/0/message')
  })

  test('is refused with the first place that its schema does not allow', () => {
    const schema = {
      type: 'object',
      properties: {
        a: { type: 'array', items: { type: 'object', properties: { 'b/c': { type: 'number' } } } },
      },
      required: ['a'],
    }
    const reader = compileFormat(text('t', { schema }))
    expect(reader.read({ a: [], t: 'hi' }).text).toBe('hi')
    expect(caught(() => reader.read({ t: 'hi', a: [{ 'b/c': 1 }, { 'b/c': 'x' }] })).place).toBe('/a/1/b~1c')
    expect(caught(() => reader.read({ t: 'hi' })).place).toBe('/a')
  })

  test('is an error of the vendor where it holds one, whichever way', () => {
    const body = { error: { code: 'overloaded', message: 'come back later' }, usage: { prompt_tokens: 7 } }
    for (const format of [openaiChat, { ...openaiChat, paths: { ...openaiChat.paths, error: undefined } }]) {
      const error = caught(() => compileFormat(format as ReadableFormat).read(body))
      expect(error).toBeInstanceOf(VendorReportedError)
      expect((error as VendorReportedError).error).toEqual(body.error)
      expect(error.usage?.prompt_tokens).toBe(7)
    }
    expect(caught(() => chat.read(completion({ content: 'a' }, { error: 'no' })))).toBeInstanceOf(
      VendorReportedError,
    )
  })

  test.each([
    ['a text that is a number', text('n'), { n: 1 }, 'text'],
    ['calls that are texts', { ...text('t'), paths: { tool_calls: 'c' } }, { c: ['x'] }, 'tool_calls'],
    [
      'a call without a name',
      { ...text('t'), paths: { tool_calls: 'c' } },
      { c: [{ id: '1' }] },
      'tool_calls',
    ],
    [
      'vectors of two lengths',
      { category: 'embedding', paths: { embedding: 'e' } },
      { e: [[1], [1, 2]] },
      'embedding',
    ],
    [
      'a vector with a text',
      { category: 'embedding', paths: { embedding: 'e' } },
      { e: [[1, '2']] },
      'embedding',
    ],
    ['no vector at all', { category: 'embedding', paths: { embedding: 'e' } }, { e: [] }, 'embedding'],
    [
      'a picture that is a word',
      { category: 'text-to-image', paths: { images: 'i' } },
      { i: ['oh no!'] },
      'images',
    ],
    [
      'a ranking without scores',
      { category: 'rerank', paths: { ranking: 'r' } },
      { r: [{ index: 0 }] },
      'ranking',
    ],
    ['an expression that cannot work', text("join('', t)"), { t: 5 }, 'text'],
  ] as const)('is refused for %s', (_, format, raw, place) => {
    expect(caught(() => compileFormat(format as ReadableFormat).read(raw)).place).toBe(place)
  })

  test('needs no text where it was truncated or withheld, and no result while the job is running', () => {
    const cut = { choices: [{ message: { content: null }, finish_reason: 'length' }] }
    expect(chat.read(cut)).toMatchObject({ text: '', finish: 'length' })
    const job = compileFormat({
      category: 'text-to-video',
      paths: { job_id: 'id', status: 's', video: 'v' },
      poll: { path: '/{{job_id}}', method: 'GET', interval_ms: 1, done: ['ok'], failed: [] },
    })
    expect(job.read({ id: 12, s: 'wait' }).job).toEqual({ id: '12', status: 'wait' })
    expect(caught(() => job.read({ id: 12, s: 'ok' })).place).toBe('video')
    expect(job.read({ s: 'ok', v: 'https://a.example/v.mp4' }).video).toEqual({
      url: 'https://a.example/v.mp4',
    })
  })
})

describe('parts', () => {
  test('pictures come as addresses, data addresses or base64', () => {
    const reader = compileFormat({ category: 'text-to-image', paths: { images: 'i' } })
    const i = [
      'https://a.example/x.png',
      'data:image/png;base64,AAAA',
      'AAAA',
      { base64: 'BBBB', mime_type: 'image/webp' },
    ]
    expect(reader.read({ i }).images).toEqual([
      { url: 'https://a.example/x.png' },
      { base64: 'AAAA', mime_type: 'image/png' },
      { base64: 'AAAA', mime_type: null },
      { base64: 'BBBB', mime_type: 'image/webp' },
    ])
  })

  test('arguments may be text, an object or nothing, and ids that are used or doubled come out new', () => {
    const call = (id: string, args: unknown) => ({ id, function: { name: 'f', arguments: args } })
    const { tool_calls } = chat.read(
      completion({ tool_calls: [call('a', '{"x":1}'), call('a', { x: 2 }), call('b', null)] }),
      ['b'],
    )
    expect(tool_calls.map((one) => one.arguments)).toEqual(['{"x":1}', '{"x":2}', '{}'])
    expect(tool_calls[0]?.id).toBe('a')
    expect(new Set([...tool_calls.map(({ id }) => id), 'b']).size).toBe(4)
  })

  test.each([
    [
      { prompt_tokens: 5, completion_tokens: 2 },
      { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    ],
    [
      { prompt_tokens: 5, total_tokens: 9 },
      { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 },
    ],
    [
      { prompt_tokens: -5, completion_tokens: 2 },
      { prompt_tokens: 0, completion_tokens: 2, total_tokens: 2 },
    ],
    [
      { prompt_tokens: 1e300, total_tokens: 3 },
      { prompt_tokens: 3, completion_tokens: 0, total_tokens: 3 },
    ],
    [
      { prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 9 } },
      { prompt_tokens: 3, cached_tokens: 3 },
    ],
    [{ prompt_tokens: '5' }, null],
    ['none', null],
  ])('usage %j is %j', (usage, expected) => {
    const found = chat.read(completion({ content: 'a' }, { usage })).usage
    if (expected === null) expect(found).toBeNull()
    else expect(found).toMatchObject(expected)
  })
})

describe('hostile answers', () => {
  const read = (content: string): string => chat.read(completion({ content })).text

  test('NUL stays, lone surrogates are replaced, and pairs split between events are joined', () => {
    expect(read('a\u0000b\ud800c')).toBe('a\u0000b\ufffdc')
    const stream = chat.stream([])
    const deltas = ['a\ud83d', '\ude00b', '\ud83d'].map(
      (content) => stream?.take({ choices: [{ delta: { content } }] }).text,
    )
    expect(deltas).toEqual(['a', '😀b', ''])
    expect(stream?.end().text).toBe('a😀b\ufffd')
  })

  test('four megabytes are read, and not much more', () => {
    expect(read('x'.repeat(4_000_000)).length).toBe(4_000_000)
    expect(() => read('x'.repeat(4_200_000))).toThrow('more than 4194304 characters of text')
  })

  test('extreme nesting is at worst unreadable', () => {
    let deep: unknown = 'x'
    for (let n = 0; n < 200_000; n += 1) deep = [deep]
    caught(() => chat.read(completion({ content: deep })))
    caught(() => compileFormat(text('to_string(t)')).read({ t: deep }))
    caught(() =>
      chat.read(completion({ tool_calls: [{ id: 'a', function: { name: 'f', arguments: deep } }] })),
    )
  })

  test('members of the prototype are not read', () => {
    for (const path of [
      '__proto__',
      'constructor',
      'a.toString',
      '__proto__.constructor.name',
      'a || constructor',
    ]) {
      expect(caught(() => compileFormat(text(path)).read({ a: {} })).place).toBe('text')
    }
    const raw = JSON.parse('{"__proto__":{"t":"own"}}')
    expect(compileFormat(text('"__proto__".t')).read(raw).text).toBe('own')
    expect({}).not.toHaveProperty('t')
  })

  test('no JSON makes any built-in format throw another error than Unreadable', () => {
    const names = fc.constantFrom(
      ...'choices message delta content text output usage prompt_tokens error type index data embedding finish_reason'.split(
        ' ',
      ),
    )
    const json = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 6 },
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(names, tie('value'), { maxKeys: 5 }),
      ),
    })).value
    const readers = builtInFormats().map(compileFormat)
    fc.assert(
      fc.property(json, (raw) => {
        for (const reader of readers) {
          for (const work of [() => reader.read(raw), () => reader.stream([])?.take(raw)]) {
            try {
              work()
            } catch (error) {
              if (!(error instanceof UnreadableResponseError)) throw error
            }
          }
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('a stream', () => {
  test('counts by the last usage of each kind', () => {
    const stream = compileFormat(anthropicMessages).stream([])
    stream?.take({ type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } })
    stream?.take({ type: 'message_delta', delta: {}, usage: { output_tokens: 4 } })
    stream?.take({ type: 'message_delta', delta: {}, usage: { output_tokens: 9 } })
    expect(stream?.usage()).toMatchObject({ prompt_tokens: 10, completion_tokens: 9, total_tokens: 19 })
    expect(stream?.finished()).toBe(false)
  })

  test('is null where the format has none', () => {
    expect(compileFormat(text('t')).stream([])).toBeNull()
  })

  /** The same stream with its texts in other pieces. */
  const cut = (value: Json, at: number): [Json, Json] | null => {
    const event = structuredClone(value) as { choices?: { delta?: { content?: string } }[] }
    const content = event.choices?.[0]?.delta?.content
    if (typeof content !== 'string' || content.length < 2) return null
    const place = 1 + (at % (content.length - 1))
    const piece = (part: string): Json => {
      const copy = structuredClone(event)
      const delta = copy.choices?.[0]?.delta
      if (delta !== undefined) delta.content = part
      return copy as Json
    }
    return [piece(content.slice(0, place)), piece(content.slice(place))]
  }
  const played = (events: readonly Json[]): CanonicalResult | undefined => {
    const stream = chat.stream([])
    for (const event of events) stream?.take(event)
    return stream?.end()
  }

  test('gives the same result however its text is cut into pieces', () => {
    const streams = toFormatSamples(openaiChatSamples, openaiChat)
      .filter(({ expected }) => !Object.hasOwn(expected, 'error'))
      .map(({ raw }) => raw)
      .filter((raw) => typeof raw === 'string')
      .map((raw) => parseEvents(raw, { format: 'sse', done: '[DONE]' }) as Json[])
    const wide = (content: string): Json => ({ choices: [{ index: 0, delta: { content } }] })
    fc.assert(
      fc.property(
        fc.constantFrom(...streams),
        fc.string({ unit: 'binary', maxLength: 12 }),
        fc.array(fc.nat(30), { maxLength: 12 }),
        (events, extra, cuts) => {
          const whole = [events[0] as Json, wide(extra), ...events.slice(1)]
          let pieces = whole
          for (const at of cuts) {
            const chosen = at % pieces.length
            const two = cut(pieces[chosen] as Json, at)
            if (two !== null) pieces = [...pieces.slice(0, chosen), ...two, ...pieces.slice(chosen + 1)]
          }
          expect(played(pieces)).toEqual(played(whole))
        },
      ),
      { numRuns: 300 },
    )
  })
})
