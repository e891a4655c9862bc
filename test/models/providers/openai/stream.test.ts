import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MasonError } from '../../../../src/state/errors.ts'
import type { ModelReply } from '../../../../src/state/ports/models.ts'
import { ask, never, openTestModels } from '../../../support/models.ts'
import type { Fetch } from '../../../support/one-server.ts'

/** A server that sends these pieces as its body; for shapes that no fault of the fake model has. */
const serving =
  (...pieces: (string | Uint8Array<ArrayBuffer>)[]): Fetch =>
  () => {
    const source = pieces.map((piece) =>
      typeof piece === 'string' ? new TextEncoder().encode(piece) : piece,
    )
    const stream = new ReadableStream({
      pull: (controller) => {
        const next = source.shift()
        if (next === undefined) controller.close()
        else controller.enqueue(next)
      },
    })
    return Promise.resolve(new Response(stream))
  }

const call = (fetch: Fetch): Promise<ModelReply> =>
  openTestModels({
    baseUrl: 'http://in-memory/v1',
    fetch,
    retry: { attempts: 1, baseMs: 1, maxMs: 1 },
  }).models.call(ask(), never())

const event = (delta: unknown, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ delta, finish_reason }] })}\n\n`
const done = 'data: [DONE]\n\n'
const calling = async (...pieces: unknown[]) => {
  const events = pieces.map((piece) => event({ tool_calls: [piece] }))
  const { tool_calls } = await call(serving(...events, event({}, 'tool_calls'), done))
  return tool_calls.map((one) => [one.id, one.name, one.arguments])
}

describe('pieces of tool calls', () => {
  it('without index belong to the call before, until a new id comes', async () => {
    const calls = await calling(
      { id: 'a1', function: { name: 'x', arguments: '{"n":' } },
      { function: { arguments: '1}' } },
      { id: 'b2', function: { name: 'y', arguments: '{}' } },
    )
    expect(calls).toEqual([
      ['a1', 'x', '{"n":1}'],
      ['b2', 'y', '{}'],
    ])
  })

  it('of parallel calls that all have index 0 are distinguished by their ids', async () => {
    const calls = await calling(
      { index: 0, id: 'a1', function: { name: 'x', arguments: '{"n":1}' } },
      { index: 0, id: 'b2', function: { name: 'x', arguments: '{"n":2}' } },
    )
    expect(calls).toEqual([
      ['a1', 'x', '{"n":1}'],
      ['b2', 'x', '{"n":2}'],
    ])
  })

  it('may repeat id and name, start late, and come in any order', async () => {
    const calls = await calling(
      { index: 1, id: 'b2', function: { name: 'search', arguments: '{"q":' } },
      { index: 0, id: 'a1', function: { name: 'read', arguments: '' } },
      { index: 1, id: 'b2', function: { name: 'search', arguments: '"z"}' } },
      { index: 900_000_000, id: 'c3', function: { name: 'far' } },
    )
    expect(calls).toEqual([
      ['a1', 'read', '{}'],
      ['b2', 'search', '{"q":"z"}'],
      ['c3', 'far', '{}'],
    ])
  })

  it('may bring their arguments as an object', async () => {
    const calls = await calling({ index: 0, id: 'a1', function: { name: 'x', arguments: { n: 1 } } })
    expect(calls).toEqual([['a1', 'x', '{"n":1}']])
  })

  it('count although the first delta names no role', async () => {
    const calls = await calling({ index: 0, id: 'a1', function: { name: 'x', arguments: '{}' } })
    expect(calls).toHaveLength(1)
  })
})

describe('a stream', () => {
  it('is complete with finish_reason and no [DONE], and with [DONE] and no finish_reason', async () => {
    await expect(call(serving(event({ content: 'a' }, 'stop')))).resolves.toMatchObject({
      text: 'a',
      finish: 'stop',
    })
    await expect(call(serving(event({ content: 'b' }), done))).resolves.toMatchObject({
      text: 'b',
      finish: 'stop',
    })
  })

  it('that breaks after its finish_reason is complete all the same', async () => {
    const pieces = [event({ content: 'all' }, 'length')]
    const fetch: Fetch = () => {
      const stream = new ReadableStream({
        pull: (controller) => {
          const next = pieces.shift()
          if (next === undefined) controller.error(new Error('socket closed'))
          else controller.enqueue(new TextEncoder().encode(next))
        },
      })
      return Promise.resolve(new Response(stream))
    }
    await expect(call(fetch)).resolves.toMatchObject({ text: 'all', finish: 'length' })
  })

  it('may use CRLF, comments, a byte order mark, and lack its last empty line', async () => {
    const last = event({ content: 'b' }, 'stop').trimEnd()
    const pieces = ['\ufeff: hi\r\n\r\n', event({ content: 'a' }).replaceAll('\n', '\r\n'), last]
    await expect(call(serving(...pieces))).resolves.toMatchObject({ text: 'ab' })
  })

  it('may give text as a list of parts, a refusal, and usage inside the choice', async () => {
    const parts = [
      { type: 'thinking', thinking: [] },
      { type: 'text', text: 'Hi' },
    ]
    const usage = { prompt_tokens: 3, completion_tokens: 4 }
    const last = `data: ${JSON.stringify({ choices: [{ delta: { refusal: ', no' }, finish_reason: 'stop', usage }] })}\n\n`
    const reply = await call(serving(event({ content: parts }), last, done))
    expect(reply).toMatchObject({ text: 'Hi, no', usage: { ...usage, total_tokens: 7 } })
  })

  it('may give reasoning among its parts, and count it apart from the completion', async () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Two words.' }] }
    const usage = {
      prompt_tokens: 3,
      completion_tokens: 4,
      total_tokens: 27,
      completion_tokens_details: { reasoning_tokens: 20 },
    }
    const last = `data: ${JSON.stringify({ choices: [{ delta: { content: 'Hi' }, finish_reason: 'stop' }], usage })}\n\n`
    const reply = await call(serving(event({ content: [thinking] }), last, done))
    expect(reply).toMatchObject({ text: 'Hi', reasoning: 'Two words.' })
    expect(reply.usage).toEqual({ prompt_tokens: 3, completion_tokens: 24, total_tokens: 27 })
  })

  it('ends with U+FFFD when half a pair of surrogates is all that came', async () => {
    const heard: string[] = []
    const body = `data: {"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}\n\n${done}`
    const { models } = openTestModels({ baseUrl: 'http://in-memory/v1', fetch: serving(body) })
    const reply = await models.call(ask({ onText: (text) => heard.push(text) }), never())
    expect([reply.text, heard.join('')]).toEqual(['a\ufffd', 'a\ufffd'])
  })

  const whole = [
    event({ role: 'assistant', content: 'né 👋' }),
    event({ tool_calls: [{ index: 0, id: 'a1', function: { name: 'x', arguments: '{"n":1}' } }] }),
    event({}, 'tool_calls'),
    done,
  ].join('')
  const bytes = new TextEncoder().encode(whole)

  it('reads the same however it is cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 12 }),
        async (cuts) => {
          const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
          const pieces = at.slice(1).map((end, n) => bytes.slice(at[n], end))
          const reply = await call(serving(...pieces))
          expect(reply).toMatchObject({ text: 'né 👋', finish: 'tool_calls', tool_calls: [{ id: 'a1' }] })
        },
      ),
      { numRuns: 100 },
    )
  })

  it('ends in a reply or a typed error, whatever the bytes are', async () => {
    const damaged = fc
      .tuple(fc.nat(bytes.length), fc.nat(20), fc.uint8Array({ maxLength: 20 }))
      .map(([at, gone, put]) => Uint8Array.from([...bytes.slice(0, at), ...put, ...bytes.slice(at + gone)]))
    const shaped = fc
      .json()
      .map((json) => new TextEncoder().encode(`data: ${json}\n\ndata: {"choices":${json}}\n\n`))
    const anyBody = fc.oneof(damaged, shaped, fc.uint8Array({ maxLength: 200 }))
    await fc.assert(
      fc.asyncProperty(anyBody, async (body) => {
        const result = await call(serving(Uint8Array.from(body))).catch((error: unknown) => error)
        if (result instanceof MasonError) expect(result.code).toMatch(/^model_/)
        else expect(result).toHaveProperty('finish')
      }),
      { numRuns: 300 },
    )
  })
})
