import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import { eventually } from '../../app/http/test-server.ts'
import { type OpenAIServer, startOpenAIServer, vendorKey } from '../../support/openai-api-server.ts'

/** The official client, unmodified, over real HTTP. */

let endpoint: OpenAIServer
let client: OpenAI
beforeAll(async () => {
  endpoint = await startOpenAIServer()
  client = endpoint.client()
})
afterAll(() => endpoint[Symbol.asyncDispose]())
beforeEach(() => {
  endpoint.vendor.reset()
  endpoint.settled.length = 0
  endpoint.embedded.length = 0
})

const user = (content: string) => [{ role: 'user' as const, content }]
const weather = {
  type: 'function' as const,
  function: {
    name: 'weather',
    description: 'Tells the weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
}
const calls = [
  { id: 'call_a', name: 'weather', arguments: { city: 'Paris' } },
  { id: 'call_b', name: 'weather', arguments: { city: 'Rome' } },
]

describe('chat', () => {
  const history = (broken: number) =>
    Array.from({ length: 50_000 }, (_, at) => ({
      role: 'user' as const,
      content: [
        { type: at < broken ? 'text' : 'sound', text: `message ${at}` } as { type: 'text'; text: string },
      ],
    }))

  test('a history of 50,000 messages with parts is answered', async () => {
    endpoint.vendor.script({ '*': [{ text: 'Read.' }] })
    const answer = await client.chat.completions.create({ model: 'chatty', messages: history(50_000) })
    expect(answer.choices[0]?.message.content).toBe('Read.')
  })

  test('of a long history with errors the first are named', async () => {
    const answer = client.chat.completions.create({ model: 'chatty', messages: history(30_000) })
    await expect(answer).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('messages[30000].content'),
    })
  })

  test('chat returns a whole completion, metered for the business and the user', async () => {
    endpoint.vendor.script({ '*': [{ text: 'Hello there', reasoning: 'a greeting' }] })
    const answer = await client.chat.completions.create({
      model: 'chatty',
      messages: user('Hi'),
      user: 'ann',
    })
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'chatty',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: { role: 'assistant', content: 'Hello there', reasoning_content: 'a greeting' },
        },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    })
    expect(endpoint.settled).toEqual([
      expect.objectContaining({
        status: 'succeeded',
        role: 'door',
        caller: { business_id: 'acme', user_id: 'ann', run_id: null, token_id: null },
        usage: expect.objectContaining({ total_tokens: 15 }),
      }),
    ])
  })

  test('chat passes on the parameters of OpenAI and drops the rest', async () => {
    await client.chat.completions.create({
      model: 'chatty',
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'Be brief' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'And' },
            { type: 'text', text: 'now?' },
          ],
        },
      ],
      tools: [weather],
      tool_choice: 'required',
      parallel_tool_calls: false,
      temperature: 0.3,
      top_p: 0.9,
      max_completion_tokens: 77,
      stop: ['END'],
      seed: 7,
      n: 1,
      logit_bias: { '50256': -100 },
      reasoning_effort: 'low',
      response_format: { type: 'json_object' },
      store: true,
      metadata: { a: 'b' },
      ...{ top_k: 5, made_up: true },
    })
    const [request] = endpoint.vendor.requests()
    expect(request?.headers.authorization).toBe(`Bearer ${vendorKey}`)
    expect(request?.body).toMatchObject({
      model: 'upstream-chatty',
      messages: [
        { role: 'system', content: 'Be brief' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
        { role: 'user', content: 'And\nnow?' },
      ],
      tools: [weather],
      tool_choice: 'required',
      parallel_tool_calls: false,
      temperature: 0.3,
      top_p: 0.9,
      max_completion_tokens: 77,
      stop: ['END'],
      seed: 7,
      logit_bias: { '50256': -100 },
      reasoning_effort: 'low',
      response_format: { type: 'json_object' },
    })
    for (const name of ['store', 'metadata', 'top_k', 'made_up'])
      expect(request?.body).not.toHaveProperty(name)
  })

  test('chat requests JSON of a schema', async () => {
    endpoint.vendor.script({ '*': [{ text: '{"a":1}' }] })
    const schema = {
      type: 'object',
      properties: { a: { type: 'number' } },
      required: ['a'],
      additionalProperties: false,
    }
    const answer = await client.chat.completions.parse({
      model: 'chatty',
      messages: user('Give a'),
      response_format: { type: 'json_schema', json_schema: { name: 'an_a', strict: true, schema } },
    })
    expect(answer.choices[0]?.message.parsed).toEqual({ a: 1 })
    expect(endpoint.vendor.requests()[0]?.schema).toEqual(schema)
  })

  test('chat passes on parallel tool calls', async () => {
    endpoint.vendor.script({ '*': [{ tool_calls: calls }] })
    const answer = await client.chat.completions.create({
      model: 'chatty',
      messages: user('Weather?'),
      tools: [weather],
    })
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: null,
        tool_calls: calls.map(({ id, name, arguments: args }) => ({
          id,
          type: 'function',
          function: { name, arguments: JSON.stringify(args) },
        })),
      },
    })
  })
})

describe('streams', () => {
  test('a stream has role, text, finish reason and usage as the vendor sends them', async () => {
    endpoint.vendor.script({ '*': [{ text: 'one two three four', reasoning: 'thinking' }] })
    const stream = await client.chat.completions.create({
      model: 'chatty',
      messages: user('Count'),
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('one two three four')
    expect(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length).toBeGreaterThan(1)
    expect(JSON.stringify(chunks)).toContain('reasoning_content')
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop')
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 15 } })
    expect(new Set(chunks.map(({ id, model, object }) => `${id} ${model} ${object}`)).size).toBe(1)
  })

  test('the first words of a stream arrive while the vendor still sends', async () => {
    endpoint.vendor.script({ '*': [{ text: 'first and last', failure: 'stall_after_first_chunk' }] })
    const stream = await client.chat.completions.create({
      model: 'chatty',
      messages: user('Go'),
      stream: true,
    })
    for await (const chunk of stream) {
      expect(chunk.choices[0]?.delta.content).toBe('firs')
      break
    }
    // the disconnect ends the call, which is metered
    await eventually(() => endpoint.vendor.open() === 0)
    await eventually(() => endpoint.settled.length === 1)
    expect(endpoint.settled[0]?.status).toBe('aborted')
  })

  test("the client's own helper joins the tool calls of a stream", async () => {
    endpoint.vendor.script({ '*': [{ text: 'Let me look', tool_calls: calls }] })
    const runner = client.chat.completions.stream({
      model: 'chatty',
      messages: user('Weather?'),
      tools: [weather],
    })
    const answer = await runner.finalChatCompletion()
    expect(answer.choices[0]?.finish_reason).toBe('tool_calls')
    expect(answer.choices[0]?.message.content).toBe('Let me look')
    expect(
      answer.choices[0]?.message.tool_calls?.map((call) => call.type === 'function' && call.function),
    ).toMatchObject(calls.map(({ name, arguments: args }) => ({ name, arguments: JSON.stringify(args) })))
  })

  test('an error after the first word ends the stream with an error, without a second attempt', async () => {
    endpoint.vendor.script({ '*': [{ text: 'half of it', failure: 'cut' }, { text: 'a second start' }] })
    const stream = await client.chat.completions.create({
      model: 'chatty',
      messages: user('Go'),
      stream: true,
    })
    let text = ''
    const read = async () => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    }
    await expect(read()).rejects.toMatchObject({ code: 'model_unavailable', type: 'server_error' })
    expect(text).toBe('hal')
    expect(endpoint.vendor.requests()).toHaveLength(1)
  })

  test('an error before the first word gets its status, or a second attempt', async () => {
    endpoint.vendor.script({ '*': [{ failure: { status: 400 } }] })
    const ask = () => client.chat.completions.create({ model: 'chatty', messages: user('Go'), stream: true })
    await expect(ask()).rejects.toBeInstanceOf(OpenAI.BadRequestError)
    endpoint.vendor.reset()
    endpoint.vendor.script({ '*': [{ failure: 'reset' }, { text: 'well' }] })
    let text = ''
    for await (const chunk of await ask()) text += chunk.choices[0]?.delta.content ?? ''
    expect(text).toBe('well')
  })

  test('a response without words is a stream too', async () => {
    endpoint.vendor.script({ '*': [{ text: '' }] })
    const runner = client.chat.completions.stream({ model: 'chatty', messages: user('Hush') })
    expect((await runner.finalChatCompletion()).choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: null },
    })
  })

  test('a client that disconnects before the first word ends the call', async () => {
    endpoint.vendor.script({ '*': [{ hold: true }] })
    const controller = new AbortController()
    const aborted = client.chat.completions
      .create({ model: 'chatty', messages: user('Go'), stream: true }, { signal: controller.signal })
      .catch((error: unknown) => error)
    await eventually(() => endpoint.vendor.held() === 1)
    controller.abort()
    expect(await aborted).toBeInstanceOf(OpenAI.APIUserAbortError)
    await eventually(() => endpoint.vendor.open() === 0)
    await eventually(() => endpoint.settled[0]?.status === 'aborted')
  })
})

describe('embeddings', () => {
  test('embeddings are sent as base64, the default of the client, and as numbers', async () => {
    const ask = (more: object = {}) =>
      client.embeddings.create({ model: 'embedder', input: ['hello', 'ab'], ...more })
    const expected = [
      { object: 'embedding', index: 0, embedding: [5, 104, 0.5] },
      { object: 'embedding', index: 1, embedding: [2, 97, 0.5] },
    ]
    const decoded = await ask()
    expect(decoded.data.map((one) => ({ ...one, embedding: [...one.embedding] }))).toEqual(expected)
    expect((await ask({ encoding_format: 'float', dimensions: 3 })).data).toEqual(expected)
    expect(decoded.usage).toEqual({ prompt_tokens: 4, total_tokens: 4 })
    expect(endpoint.embedded[1]).toMatchObject({
      model: 'upstream-embedder',
      input: ['hello', 'ab'],
      dimensions: 3,
    })
    expect((await client.embeddings.create({ model: 'embedder', input: 'one text' })).data).toHaveLength(1)
  })

  test('embeddings of token lists are refused with an explanation', async () => {
    await expect(client.embeddings.create({ model: 'embedder', input: [1, 2, 3] })).rejects.toMatchObject({
      status: 400,
      param: 'input[0]',
      message: expect.stringContaining('lists of tokens are not supported'),
    })
  })
})

describe('models', () => {
  test('models are listed and found by alias', async () => {
    const models: OpenAI.Model[] = []
    for await (const model of client.models.list()) models.push(model)
    expect(models.map(({ id }) => id)).toEqual(['chatty', 'embedder', 'seeing/eye:1'])
    expect(await client.models.retrieve('seeing/eye:1')).toEqual({
      id: 'seeing/eye:1',
      object: 'model',
      created: 0,
      owned_by: 'acme-ai',
      category: 'multimodal',
      capabilities: ['chat'],
    })
    await expect(client.models.retrieve('none')).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })

  test('20,000 models come as pages of 1 MiB, each model once', async () => {
    const names = Array.from({ length: 20_000 }, (_, at) => `m${at}-${'x'.repeat(150)}`)
    await using own = await startOpenAIServer({}, names)
    const listed: string[] = []
    for (let after = ''; ; after = listed.at(-1) ?? '') {
      const query = after === '' ? '' : `?after=${encodeURIComponent(after)}`
      const { body, text } = await own.server.call('GET', `/v1/models${query}`, { token: 'all' })
      expect(text.length).toBeLessThan(1.1 * 1024 * 1024)
      listed.push(...body.data.map(({ id }: { id: string }) => id))
      if (!body.has_more) break
    }
    expect(listed).toEqual([...names, 'chatty', 'embedder', 'seeing/eye:1'].sort())
    // the client reads one page, and any model by its alias
    const first = await own.client().models.list()
    expect(first.data.length).toBeLessThan(names.length)
    expect((await own.client().models.retrieve(names.at(-1) ?? '')).id).toBe(names.at(-1))
  })
})

describe('errors with the classes of the client', () => {
  const ask = (more: object = {}, by = client) =>
    by.chat.completions.create({ model: 'chatty', messages: user('Hi'), ...more })

  test('unknown models, unknown tokens and missing roles get the errors of the client', async () => {
    await expect(ask({ model: 'none' })).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expect(ask({ model: 'none' })).rejects.toMatchObject({ code: 'model_not_found', param: 'model' })
    const stranger = endpoint.client({ apiKey: 'stranger' })
    await expect(ask({}, stranger)).rejects.toBeInstanceOf(OpenAI.AuthenticationError)
    await expect(ask({}, stranger)).rejects.toMatchObject({ code: 'invalid_api_key' })
    await expect(ask({}, endpoint.client({ apiKey: 'reader' }))).rejects.toBeInstanceOf(
      OpenAI.PermissionDeniedError,
    )
    await expect(endpoint.client({ apiKey: 'submitter' }).models.list()).rejects.toBeInstanceOf(
      OpenAI.PermissionDeniedError,
    )
  })

  test.each<[object, string | null]>([
    [{ messages: [] }, 'messages'],
    [{ messages: 'hi' }, 'messages'],
    [{ messages: [{ role: 'unknown', content: 'x' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
    [{ messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'messages[0].content'],
    [{ model: undefined }, 'model'],
    [{ n: 2 }, 'n'],
    [{ temperature: 'hot' }, 'temperature'],
    [{ stop: 5 }, 'stop'],
    [{ tools: [{ type: 'custom' }] }, 'tools[0].type'],
    [{ stream: 'yes' }, 'stream'],
    [{ user: 'a\u0000b' }, 'user'],
  ])('%j is a bad request that names its parameter', async (more, param) => {
    const error: unknown = await ask(more).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
    expect(error).toMatchObject({ type: 'invalid_request_error' })
    expect(String((error as { param: unknown }).param)).toContain(param)
    expect(endpoint.vendor.requests()).toEqual([])
  })

  test('a model of another category is a bad request', async () => {
    await expect(ask({ model: 'embedder' })).rejects.toMatchObject({ status: 400, param: 'model' })
    await expect(client.embeddings.create({ model: 'chatty', input: 'x' })).rejects.toMatchObject({
      status: 400,
    })
  })

  test('a refusal of the vendor is passed on, and never the key', async () => {
    const refusals: [object, number, string][] = [
      [
        { status: 400, body: { error: { message: 'bad', code: 'context_length_exceeded' } } },
        400,
        'context_length_exceeded',
      ],
      [{ status: 400, body: { error: { message: 'bad', code: 'content_filter' } } }, 400, 'content_filter'],
      [{ status: 401, body: { error: { message: `wrong key ${vendorKey}` } } }, 502, 'model_unauthorized'],
    ]
    for (const [failure, status, code] of refusals) {
      endpoint.vendor.script({ '*': [{ failure: failure as never }] })
      const error = await ask().catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ status, code })
      expect(JSON.stringify(error) + String(error)).not.toContain(vendorKey)
    }
  })

  test('what would change the reply and is not supported is a bad request that says so, not dropped', async () => {
    const ask = (more: object) =>
      client.chat.completions.create({ model: 'chatty', messages: user('Hi'), ...more } as never)
    for (const [more, message] of [
      [{ n: 2 }, 'n: only one choice is supported'],
      [{ logprobs: true }, 'logprobs: log probabilities are not supported'],
      [{ functions: [{ name: 'f' }] }, 'functions: use `tools` in place of `functions`'],
      [{ modalities: ['text', 'audio'] }, 'modalities[1]: only text is supported'],
    ] as const)
      await expect(ask(more)).rejects.toMatchObject({ status: 400, error: { message } })
    await ask({ n: 1, logprobs: false, functions: [], modalities: ['text'] })
  })

  test('an error in a part of a message names the part', async () => {
    const ask = (...content: unknown[]) =>
      client.chat.completions.create({ model: 'chatty', messages: [{ role: 'user', content }] } as never)
    for (const [part, param] of [
      [{ type: 'text', text: 1 }, 'messages[0].content[1].text'],
      [{ type: 'image_url', image_url: 'data:image/png;base64,AA==' }, 'messages[0].content[1].image_url'],
      [{ type: 'input_audio', input_audio: {} }, 'messages[0].content[1].type'],
    ] as const)
      await expect(ask({ type: 'text', text: 'Hi' }, part)).rejects.toMatchObject({ status: 400, param })
  })

  test('an error that is of no field says what to do', async () => {
    const post = (token: string | undefined, type: string) =>
      endpoint.server.call('POST', '/v1/chat/completions', {
        raw: '{}',
        ...(token && { token }),
        headers: { 'content-type': type },
      })
    for (const [reply, remedy] of [
      [await post(undefined, 'application/json'), 'Authorization: Bearer'],
      [await post('all', 'text/plain'), 'send "content-type: application/json'],
    ] as const)
      expect(reply.body.error.message).toContain(remedy)
  })

  test('a body that is not JSON, or empty, is a bad request', async () => {
    const post = (raw: string, type = 'application/json') =>
      endpoint.server.call('POST', '/v1/chat/completions', {
        raw,
        token: 'all',
        headers: { 'content-type': type },
      })
    expect(await post('{"model":')).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request_error' } },
    })
    expect(await post('')).toMatchObject({ status: 400, body: { error: { code: 'malformed_json' } } })
    expect(await post('x', 'text/plain')).toMatchObject({ status: 415, body: { error: { param: null } } })
    expect(await post('[]')).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
  })
})

describe('limits and health', () => {
  const expectRateLimit = async (own: OpenAIServer, seconds: string): Promise<void> => {
    const failed = own.client().chat.completions.create({ model: 'chatty', messages: user('Hi') })
    const error: unknown = await failed.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OpenAI.RateLimitError)
    expect((error as InstanceType<typeof OpenAI.RateLimitError>).headers?.get('retry-after')).toBe(seconds)
  }

  test('a vendor at its rate limit is a rate limit, with a time to wait', async () => {
    await using own = await startOpenAIServer()
    own.vendor.script({ '*': [{ failure: { status: 429, headers: { 'retry-after': '120' } } }] })
    await expectRateLimit(own, '120')
  })

  test('a key at its limit is a rate limit', async () => {
    await using own = await startOpenAIServer()
    own.limit = { granted: false, limit: 'rpm', retryAfterMs: 40_000 }
    await expectRateLimit(own, '40')
  })

  test('a limit that opens later than MASON_MAX_WAIT_MS is not waited for', async () => {
    await using own = await startOpenAIServer({ maxWaitMs: 500 })
    own.limit = { granted: false, limit: 'rpm', retryAfterMs: 20_000 }
    await expectRateLimit(own, '20')
    expect(own.reservations).toBe(1)
    own.limit = null
    own.vendor.script({ '*': [{ failure: { status: 429, headers: { 'retry-after': '20' } } }] })
    await expectRateLimit(own, '20')
    // the key cools now, and no request is sent
    const sent = own.vendor.requests().length
    await expectRateLimit(own, '20')
    await own
      .client()
      .chat.completions.create({ model: 'chatty', messages: user('Hi'), stream: true })
      .then(
        () => expect.unreachable('the key cools'),
        (error: unknown) => expect(error).toBeInstanceOf(OpenAI.RateLimitError),
      )
    expect(own.vendor.requests()).toHaveLength(sent)
  })

  test('a limit that opens within MASON_MAX_WAIT_MS is waited for, and no longer in all', async () => {
    let now = 0
    const clock: Clock = {
      ...systemClock,
      monotonicMs: () => now,
      // what waits for the limit; the vendor has its time
      sleep: async (ms, signal) => {
        if (ms >= 1000) return systemClock.sleep(ms, signal)
        now += ms
      },
    }
    await using own = await startOpenAIServer({ maxWaitMs: 500 }, [], clock)
    const refusal = { granted: false, limit: 'rpm', retryAfterMs: 200 } as const
    own.limit = refusal
    await expectRateLimit(own, '1')
    expect(own.reservations).toBe(3)
    Object.defineProperty(own, 'limit', { get: () => (own.reservations > 4 ? null : refusal) })
    const answer = await own.client().chat.completions.create({ model: 'chatty', messages: user('Hi') })
    expect([answer.choices[0]?.finish_reason, own.reservations]).toEqual(['stop', 5])
  })
})
