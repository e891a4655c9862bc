import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { geminiGenerateContent } from '../../../../src/features/response-formats/built-in/gemini-generate-content.ts'
import { ollamaChat } from '../../../../src/features/response-formats/built-in/ollama-chat.ts'
import { openaiResponses } from '../../../../src/features/response-formats/built-in/openai-responses.ts'
import type { FormatInput } from '../../../../src/models/schemas/response-format.ts'
import { call, canary, errorOf, modelOf, openCaller, resultOf } from '../../../support/http-call.ts'
import { startVendor, type VendorAnswer } from '../../../support/http-vendor.ts'

const paths = {
  text: 'say',
  finish: 'end',
  error: 'oops',
  usage: { prompt_tokens: 'tokens.in', completion_tokens: 'tokens.out' },
}
const odd = (format: 'sse' | 'ndjson', done?: string): FormatInput => ({
  name: 'odd',
  category: 'text',
  request: {
    method: 'POST',
    path: '/ask',
    headers: {},
    body: { q: '{{messages[-1].content}}', s: '{{stream}}' },
  },
  paths,
  stream: { format, paths, ...(done === undefined ? {} : { done }) },
  samples: [],
})
const whole = { say: 'Hello there', end: 'stop', tokens: { in: 7, out: 2 } }
const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const good = [event({ say: 'Hel' }), event({ say: 'lo' }), event({ end: 'stop', tokens: { in: 7, out: 2 } })]

const quick = { firstByteMs: 150, idleMs: 150, totalMs: 20_000 }
/** Does not hurry the first byte, which a slow machine may take its time for. */
const stalling = { ...quick, firstByteMs: 20_000 }

/** One call of a vendor that answers with this, as a stream unless `ask` says otherwise. */
const calling = async (
  answer: VendorAnswer | (() => VendorAnswer),
  {
    format = odd('sse'),
    stream = true,
    timeouts,
    ...more
  }: {
    format?: FormatInput
    stream?: boolean
    timeouts?: typeof quick
    maxBytes?: number
    maxEvent?: number
    totalMs?: number
  } = {},
) => {
  await using vendor = await startVendor(() => (typeof answer === 'function' ? answer() : answer))
  const model = modelOf(format, vendor.url, timeouts === undefined ? {} : { timeouts })
  return await call({ model, ask: { stream }, ...more })
}
const bytes = (text: string): Uint8Array[] =>
  [...new TextEncoder().encode(text)].map((byte) => Uint8Array.of(byte))

describe('the type of a body is read from its first character, whatever was requested', () => {
  it.each([
    ['events, although nothing was to be streamed', { pieces: good }, { stream: false }],
    ['one JSON line in place of events', { pieces: [`${JSON.stringify(whole)}\n`] }, {}],
    ['one JSON text over several lines in place of events', { pieces: [JSON.stringify(whole, null, 2)] }, {}],
    ['the same in place of lines', { pieces: [JSON.stringify(whole, null, 2)] }, { format: odd('ndjson') }],
    ['one JSON line in place of many', { body: whole }, { format: odd('ndjson') }],
    ['JSON behind empty lines', { pieces: ['\n', ' \n', JSON.stringify(whole)] }, {}],
    ['lines of JSON in place of events', { pieces: [good.join('').replaceAll('data: ', '')] }, {}],
    ['events in place of lines of JSON', { pieces: good }, { format: odd('ndjson') }],
    ['a content type that lies', { pieces: good, headers: { 'content-type': 'image/png' } }, {}],
    ['a byte order mark and comments', { pieces: ['\ufeff: hi\n\n', ...good] }, {}],
    ['a last event without its empty line', { pieces: [good.join('').trimEnd()] }, {}],
    [
      'a last line without its end',
      { pieces: ['{"say":"Hello"}\n{"end":"stop"}'] },
      { format: odd('ndjson') },
    ],
  ])('%s', async (_, answer, more) => {
    expect(resultOf(await calling(answer, more)).text).toMatch(/^Hello/)
  })

  it('a list of events is a stream where events were not asked for, as Gemini sends it', async () => {
    const part = (text: string, more: object = {}) => ({
      candidates: [{ content: { parts: [{ text }] }, ...more }],
    })
    const format = geminiGenerateContent
    const body = JSON.stringify([part('Hel'), part('lo', { finishReason: 'STOP' })], null, 1)
    const called = await calling({ pieces: [body] }, { format })
    expect(resultOf(called)).toMatchObject({ text: 'Hello', finish: 'stop' })
    expect(called.deltas.map(({ text }) => text)).toEqual(['Hel', 'lo'])
  })
})

describe('a stream', () => {
  it.each(['sse', 'ndjson'] as const)('of single bytes comes out whole (%s)', async (format) => {
    const says = [{ say: 'Grüße, 世' }, { say: '界 🎈' }, { end: 'stop' }]
    const text = says.map((one) => (format === 'sse' ? event(one) : `${JSON.stringify(one)}\n`)).join('')
    const called = await calling({ pieces: bytes(text) }, { format: odd(format) })
    expect(resultOf(called).text).toBe('Grüße, 世界 🎈')
    expect(called.deltas).toHaveLength(2)
  })

  it.each([
    ['text', '{"message":{"content":"The first three are"},"done":false}\n'],
    ['a call', '{"message":{"tool_calls":[{"function":{"name":"read","arguments":{}}}]},"done":false}\n'],
  ])('that ends after its first line is cut, and no whole answer: %s', async (_, line) => {
    const { error } = errorOf(await calling({ pieces: [line] }, { format: ollamaChat }))
    expect(error).toMatchObject({ code: 'model_unavailable', what: 'ended its reply before it was finished' })
  })

  it('of calls without ids has each once, also where they come whole again at their end', async () => {
    const item = { type: 'function_call', call_id: '', name: 'read', arguments: '{"path":"a"}' }
    const called = await calling(
      {
        pieces: [0, 1]
          .flatMap((output_index) => [
            { type: 'response.output_item.added', output_index, item: { ...item, arguments: '' } },
            { type: 'response.function_call_arguments.delta', output_index, delta: item.arguments },
            { type: 'response.output_item.done', output_index, item },
          ])
          .concat([{ type: 'response.completed', response: { status: 'completed' } } as never])
          .map(event),
      },
      { format: openaiResponses },
    )
    const { tool_calls } = resultOf(called)
    expect(tool_calls.map((one) => one.arguments)).toEqual([item.arguments, item.arguments])
    expect(new Set(tool_calls.map(({ id }) => id)).size).toBe(2)
  })

  it('may hold NUL, and a pair of surrogates split over two events', async () => {
    const pieces = [
      'data: {"say":"a\\u0000\\ud83c"}\n\n',
      'data: {"say":"\\udf88b\\ud800"}\n\n',
      good[2] ?? '',
    ]
    expect(resultOf(await calling({ pieces })).text).toBe('a\u0000🎈b\ufffd')
  })

  it('counts its last usage, never the sum', async () => {
    const pieces = [1, 2, 3].map((out) => event({ say: 'x', tokens: { in: 7, out } }))
    const called = await calling({ pieces: [...pieces, event({ end: 'stop' })] })
    expect(resultOf(called).usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 })
    expect(called.usages.at(-1)).toMatchObject({ completion_tokens: 3 })
  })

  it('ends at its closing event although the connection stays open', async () => {
    const pieces = [event({ say: 'Hello' }), 'data: [END]\n\n']
    const called = await calling({ pieces, ending: 'hang' }, { format: odd('sse', '[END]') })
    expect(resultOf(called).text).toBe('Hello')
  })

  it('that is cut after its finish is complete, and before it is not', async () => {
    expect(resultOf(await calling({ pieces: good, ending: 'destroy' })).text).toBe('Hello')
    const { error, usage } = errorOf(
      await calling({ pieces: [event({ say: 'Hel', tokens: { in: 7, out: 1 } })], ending: 'destroy' }),
    )
    expect(error).toMatchObject({ code: 'model_unavailable', retry: true, interrupted: true })
    expect(usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 1 })
  })

  it('that ends in good order without saying so is cut short', async () => {
    const { error } = errorOf(await calling({ pieces: good.slice(0, 2) }))
    expect(error).toMatchObject({ code: 'model_unavailable', what: 'ended its reply before it was finished' })
  })

  it('without an end marker ends with its body', async () => {
    const { finish: _, ...endless } = paths
    const format = { ...odd('sse'), stream: { format: 'sse' as const, paths: endless } }
    expect(resultOf(await calling({ pieces: good.slice(0, 2) }, { format })).text).toBe('Hello')
  })

  it.each([
    ['event', odd('sse'), 'data: {"say":"'],
    ['line', odd('ndjson'), '{"say":"a"}\n{"say":"'],
  ])('with an %s of 10 MB is given up where it passes the cap', async (kind, format, head) => {
    const pieces = [head, ...Array.from({ length: 160 }, () => 'x'.repeat(64 * 1024)), '"}\n\n']
    const { error } = errorOf(await calling({ pieces }, { format, maxEvent: 1024 * 1024 }))
    expect(error).toMatchObject({ code: 'model_bad_reply', retry: false })
    expect(error.what).toContain(`${kind} of more than 1048576`)
  })

  it('may have an event of 10 MB below the cap', async () => {
    const big = 'x'.repeat(64 * 1024)
    const pieces = [
      'data: {"other":"',
      ...Array.from({ length: 160 }, () => big),
      '","say":"a"}\n\n',
      good[2] ?? '',
    ]
    const called = await calling({ pieces }, { maxEvent: 16 * 1024 * 1024 })
    expect(resultOf(called).text).toBe('a')
  })

  it('that takes too much memory is aborted', async () => {
    const pieces = Array.from({ length: 200 }, () => event({ say: 'x'.repeat(1000) }))
    const { error } = errorOf(await calling({ pieces, ending: 'hang' }, { maxBytes: 100_000 }))
    expect(error).toMatchObject({ code: 'model_bad_reply', what: 'sent more than 100000 bytes' })
  })
})

describe('what cannot be used', () => {
  it.each([
    ['an event that is not JSON', { pieces: [good[0] ?? '', 'data: {"say"\n\n'] }, /not JSON: \{"say"/],
    ['a body that is not JSON', { pieces: ['{"say": "Hel'] }, /not JSON/],
    ['a page of HTML', { body: '<html><body>Gateway</body></html>' }, /neither events nor JSON: Gateway/],
    ['nothing at all', { pieces: [] }, /an empty reply/],
    ['blank lines', { pieces: ['\n\n  \n'] }, /an empty reply/],
  ])('%s is a bad reply', async (_, answer, what) => {
    const { error, raw } = errorOf(await calling(answer))
    expect(error).toMatchObject({ code: 'model_bad_reply', what: expect.stringMatching(what) })
    expect(raw).toBeUndefined()
  })

  it.each([true, false])(
    'an answer of another shape says where it differs (streamed: %s)',
    async (stream) => {
      const pieces = stream
        ? [event({ say: 'Hel', tokens: { in: 7, out: 1 } }), event({ say: { no: 'text' } })]
        : [JSON.stringify({ say: { no: 'text' }, tokens: { in: 7, out: 1 } })]
      const outcome = errorOf(await calling({ pieces }, { stream }))
      expect(outcome).toMatchObject({
        error: { code: 'model_unreadable_answer', retry: false },
        place: 'text',
        usage: { prompt_tokens: 7, completion_tokens: 1 },
      })
      expect(outcome.raw).toContain('{"no":"text"}')
    },
  )

  it('keeps at most 64 KB of an answer that it cannot read', async () => {
    const body = { say: 7, more: 'x'.repeat(200_000) }
    const outcome = errorOf(await calling({ body }, { stream: false }))
    expect(outcome.raw).toHaveLength(64 * 1024)
  })

  it('an error inside a good answer is the error it says', async () => {
    const limited = { oops: { message: 'slow down', code: 'rate_limit_exceeded' } }
    for (const answer of [{ body: limited }, { pieces: [good[0] ?? '', event(limited)] }]) {
      const { error, raw } = errorOf(await calling(answer))
      expect(error).toMatchObject({ code: 'model_rate_limited', what: expect.stringContaining('slow down') })
      expect(raw).toBeUndefined()
    }
  })

  it('an answer that was withheld whole is filtered', async () => {
    const { error } = errorOf(await calling({ body: { say: '', end: 'content_filter' } }, { stream: false }))
    expect(error.code).toBe('model_content_filtered')
  })
})

describe('an answer outside 2xx', () => {
  it.each([
    [401, {}, { code: 'model_unauthorized', retry: false }],
    [429, { 'retry-after': '7' }, { code: 'model_rate_limited', retry: true, retryAfterMs: 7000 }],
    [429, {}, { code: 'model_rate_limited', retry: true }],
    [500, {}, { code: 'model_unavailable', retry: true }],
    [529, {}, { code: 'model_unavailable', retry: true }],
    [307, { location: 'http://169.254.169.254/' }, { code: 'model_bad_request', retry: false }],
  ])('%i %o', async (status, headers, expected) => {
    const answer = { status, headers, body: { error: { message: 'no' } } }
    expect(errorOf(await calling(answer)).error).toMatchObject({ status, ...expected })
  })

  it('counts although its body stalls', async () => {
    const answer = { status: 401, pieces: ['{"error":'], ending: 'hang' as const }
    expect(errorOf(await calling(answer, { timeouts: stalling })).error).toMatchObject({
      code: 'model_unauthorized',
      status: 401,
    })
  })
})

describe('the three clocks', () => {
  it('end a call that gets no headers', async () => {
    const server = createServer(() => {})
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      const called = await call({ model: modelOf(odd('sse'), url, { timeouts: quick }) })
      expect(errorOf(called).error).toMatchObject({ code: 'model_timeout', what: 'sent nothing for 150 ms' })
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  })

  it('end a call that gets headers and no body', async () => {
    const { error } = errorOf(await calling({ pieces: [], ending: 'hang' }, { timeouts: quick }))
    expect(error).toMatchObject({ code: 'model_timeout', what: 'sent nothing for 150 ms' })
  })

  it('end a stream that stalls, and keep what it counted', async () => {
    const pieces = [event({ say: 'Hel', tokens: { in: 7, out: 1 } })]
    const outcome = errorOf(await calling({ pieces, ending: 'hang' }, { timeouts: stalling }))
    expect(outcome.error).toMatchObject({
      code: 'model_timeout',
      what: expect.stringMatching(/^stopped sending/),
    })
    expect(outcome.usage).toMatchObject({ completion_tokens: 1 })
  })

  it('end a call at the time of the whole call', async () => {
    const outcome = errorOf(await calling({ pieces: good.slice(0, 1), ending: 'hang' }, { totalMs: 200 }))
    expect(outcome.error).toMatchObject({ code: 'model_timeout', retry: false })
  })
})

describe('a caller that aborts', () => {
  it('in the middle of a stream gets the reason, and the connection to the vendor is closed', async () => {
    await using vendor = await startVendor(() => ({ pieces: [good[0] ?? ''], ending: 'hang' }))
    await using caller = openCaller()
    const controller = new AbortController()
    const reason = new Error('no longer wanted')
    const calling = caller.call({
      model: modelOf(odd('sse'), vendor.url),
      ask: { stream: true },
      signal: controller.signal,
      onDelta: () => controller.abort(reason),
    })
    await expect(calling).rejects.toBe(reason)
    await vendor.requests[0]?.closed
    expect(caller.clock.sleeping()).toBe(0)
  })

  it('before the call is sent sends nothing', async () => {
    await using vendor = await startVendor(() => ({ body: whole }))
    const signal = AbortSignal.abort(new Error('too late'))
    await expect(call({ model: modelOf(odd('sse'), vendor.url), signal })).rejects.toThrow('too late')
    expect(vendor.requests).toEqual([])
  })
})

describe('a vendor that cannot be reached', () => {
  it('is unavailable', async () => {
    // a port on which no process listens or can listen
    const { error } = errorOf(await call({ model: modelOf(odd('sse'), 'http://127.0.0.1:1') }))
    expect(error).toMatchObject({ code: 'model_unavailable', retry: true })
  })

  it('at a private address that is not allowed gets no request', async () => {
    await using vendor = await startVendor(() => ({ body: whole }))
    const { error } = errorOf(
      await call({ model: modelOf(odd('sse'), vendor.url, { allow_private: false }) }),
    )
    expect(error).toMatchObject({ code: 'model_unavailable', retry: false })
    expect(vendor.requests).toEqual([])
  })
})

describe('an answer that should be JSON', () => {
  const schema = { type: 'object', properties: {} }
  const asking = (request: FormatInput['request']): FormatInput => ({
    ...odd('sse'),
    request: request ?? null,
  })

  it('is asked for in words where the template knows no schema', async () => {
    await using vendor = await startVendor(() => ({ body: whole }))
    const format = asking({ body: { all: '{{messages}}' } })
    resultOf(await call({ model: modelOf(format, vendor.url), ask: { schema } }))
    expect(vendor.requests[0]?.text).toContain('It must match this JSON Schema')
  })

  it('is asked for in words from then on by a model that refused its schema', async () => {
    await using vendor = await startVendor((_, nth) =>
      nth === 1
        ? { status: 400, body: { error: { message: 'output_config.format is not supported' } } }
        : { body: whole },
    )
    await using caller = openCaller()
    const format = asking({ body: { all: '{{messages}}', schema: '{{schema}}' } })
    const model = modelOf(format, vendor.url)
    const first = errorOf(await caller.call({ model, ask: { schema } }))
    expect(first.error).toMatchObject({ code: 'model_bad_request', retryNow: true })
    for (const nth of [1, 2]) {
      resultOf(await caller.call({ model, ask: { schema } }))
      expect(vendor.requests[nth]?.body).not.toHaveProperty('schema')
      expect(vendor.requests[nth]?.text).toContain('It must match this JSON Schema')
    }
  })
})

describe('a request that cannot be made', () => {
  it.each([
    ['without a format', null, /no response format/],
    ['without a template', { ...odd('sse'), request: null }, /no request template/],
    ['by a template that is none', { ...odd('sse'), request: { body: '{{nothing}}' } }, /no field nothing/],
    [
      'by a function that is given what it cannot take',
      { ...odd('sse'), request: { body: { a: '{{length(query)}}' } } },
      /\/body\/a/,
    ],
    [
      'with a header that nothing can carry',
      { ...odd('sse'), request: { headers: { 'x-a': '{{messages[0].content}}\n' }, body: {} } },
      /no HTTP header can carry/,
    ],
    [
      'at an address with nothing in it',
      { ...odd('sse'), request: { path: '/a/{{query}}', body: {} } },
      /nothing/,
    ],
  ] as [string, FormatInput | null, RegExp][])('%s is refused and not sent', async (_, format, what) => {
    await using vendor = await startVendor(() => ({ body: whole }))
    const { error } = errorOf(await call({ model: modelOf(format, vendor.url) }))
    expect(error).toMatchObject({
      code: 'model_bad_request',
      retry: false,
      what: expect.stringMatching(what),
    })
    expect(JSON.stringify(error)).not.toContain(canary)
    expect(vendor.requests).toEqual([])
  })
})
