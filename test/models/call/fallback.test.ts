import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ModelSelector } from '../../../src/models/ports/call-ports.ts'
import type { CanonicalRequest } from '../../../src/models/ports/model-ports.ts'
import { type FakeModel, type FakeReply, startFakeModel } from '../../support/fake-model/fake-model.ts'
import { openRoute, twoModels } from '../../support/fallback-models.ts'
import { failureOf } from '../../support/models.ts'
import { key } from '../../support/registry-view.ts'
import { callWith } from '../../support/vendors.ts'

/** Which model of a route answers, and after how many requests, for each kind of answer of its first model. */

let server: FakeModel
beforeAll(async () => {
  server = await startFakeModel()
})
afterAll(() => server?.close())

type Layout = 'shared' | 'two'
type Answer = { reply: FakeReply; ask?: Partial<CanonicalRequest> }

const status = (code: number, body?: unknown, headers?: Record<string, string>): Answer => ({
  reply: { failure: { status: code, ...(body !== undefined && { body }), ...(headers && { headers }) } },
})
/** An error in a 200, behind a first chunk of the answer. */
const event = (...bodies: unknown[]): Answer =>
  status(
    200,
    [{ choices: [{ delta: { role: 'assistant' } }] }, ...bodies]
      .map((one) => `data: ${JSON.stringify(one)}\n\n`)
      .join(''),
  )
const failure = (named: FakeReply['failure']): Answer => ({
  reply: { text: 'half an answer', ...(named && { failure: named }) },
})
const named = (message: string, type: string, code: unknown = null) => ({
  error: { message, type, param: null, code },
})
const schema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const refusedSchema = (code: number, body: unknown): Answer => ({ ...status(code, body), ask: { schema } })

/** The first answers with the reply; the rest of what `m1` answers is fine where the reply is about the form of the request. */
const play = async ({ reply, ask = {} }: Answer, layout: Layout, selector: Partial<ModelSelector> = {}) => {
  const route = openRoute(twoModels(server.baseUrl, layout))
  const asked: string[] = []
  server.script(({ body }) => {
    const name = String(body.model)
    asked.push(name)
    if (name !== 'm1' || (ask.schema && !JSON.stringify(body).includes('json_schema')))
      return { text: 'fine' }
    const isStalled = ['stall_headers', 'stall_body', 'drip'].includes(String(reply.failure))
    // the time of the first byte is over once the vendor has the request
    if (isStalled) setTimeout(() => route.clock.jump(61_000), 20)
    return reply
  })
  const call = callWith(route, { role: 'planner', ...selector }, { ask })
  const answered = await call.then(
    ({ model }) => `${model} after ${asked.length}`,
    (error: unknown) =>
      `${error instanceof Error && 'code' in error ? error.code : error} after ${asked.length}`,
  )
  return { answered, asked, route, call }
}

type Kind = { kind: string; answers: readonly (readonly [string, Answer])[]; shared: string; two: string }
const next = { shared: 'm2 after 2', two: 'm2 after 2' }

/** The first answer of each kind is the plain one; the others are wordings and shapes of other vendors. */
const kinds: readonly Kind[] = [
  {
    kind: '500',
    ...next,
    answers: [
      ['plain', status(500)],
      ['words alone', status(500, 'Internal Server Error')],
      ['421', status(421)],
      ['TGI, as 424', status(424, { error: 'Request failed during generation', error_type: 'generation' })],
      [
        'Anthropic, as an event',
        event({ type: 'error', error: { type: 'api_error', message: 'Internal server error' } }),
      ],
      [
        'vLLM, as an event',
        event({ object: 'error', message: 'EngineCore died', type: 'InternalServerError', code: 500 }),
      ],
    ],
  },
  {
    kind: '502',
    ...next,
    answers: [
      ['plain', status(502)],
      [
        'a page of nginx',
        status(502, '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>'),
      ],
      ['Cloudflare', status(502, 'error code: 502')],
      [
        'OpenRouter, in a 200',
        status(200, {
          error: {
            code: 502,
            message: 'Provider returned error',
            metadata: { raw: 'upstream connect error' },
          },
        }),
      ],
    ],
  },
  {
    kind: '503',
    ...next,
    answers: [
      ['plain', status(503)],
      [
        'Gemini, in a list',
        status(503, [
          {
            error: {
              code: 503,
              message: 'The model is overloaded. Please try again later.',
              status: 'UNAVAILABLE',
            },
          },
        ]),
      ],
      [
        'new-api',
        status(503, named('当前分组 default 下对于模型 m1 无可用渠道', 'new_api_error', 'model_not_found')),
      ],
      ['Hugging Face', status(503, { error: 'Model m1 is currently loading', estimated_time: 20 })],
    ],
  },
  {
    kind: '529',
    ...next,
    answers: [
      ['plain', status(529)],
      [
        'Anthropic',
        status(529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
      ],
      [
        'Anthropic, as an event',
        event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
      ],
      ['a proxy, as 400', status(400, named('upstream request failed: overloaded', 'upstream_error'))],
    ],
  },
  {
    kind: '429 without a wait',
    ...next,
    answers: [
      ['plain', status(429)],
      ['Zhipu', status(429, { error: { code: '1302', message: '您当前使用该API的并发数过高，请降低并发' } })],
      ['MiniMax, in a 200', status(200, { base_resp: { status_code: 1002, status_msg: 'rate limit' } })],
      [
        'Qwen, as 400',
        status(400, {
          code: 'Throttling.RateQuota',
          message: 'Requests rate limit exceeded',
          request_id: 'r',
        }),
      ],
    ],
  },
  {
    kind: '429 with a wait',
    ...next,
    answers: [
      ['a header', status(429, undefined, { 'retry-after': '3600' })],
      [
        'OpenAI, in words',
        status(
          429,
          named(
            'Rate limit reached for m1 on requests per min. Please try again in 6m12.5s.',
            'requests',
            'rate_limit_exceeded',
          ),
        ),
      ],
      [
        'Gemini, which says quota and billing',
        status(429, {
          error: {
            code: 429,
            message: 'You exceeded your current quota, please check your plan and billing details.',
            status: 'RESOURCE_EXHAUSTED',
            details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34s' }],
          },
        }),
      ],
      ['a gateway, in a field', status(429, { detail: 'slow down', retry_after: 30 })],
    ],
  },
  {
    kind: 'no balance',
    ...next,
    answers: [
      ['402', status(402)],
      [
        'Anthropic, as 400',
        status(400, {
          type: 'error',
          error: {
            type: 'invalid_request_error',
            message: 'Your credit balance is too low to access the Anthropic API.',
          },
        }),
      ],
      [
        'Moonshot, as 429',
        status(
          429,
          named(
            'Your account is suspended due to insufficient balance, please recharge',
            'exceeded_current_quota_error',
          ),
        ),
      ],
      [
        'Zhipu, as 429',
        status(429, {
          error: { code: '1113', message: 'Insufficient balance or no resource package. Please recharge.' },
        }),
      ],
      [
        'SiliconFlow, as 403',
        status(403, { code: 30001, message: 'Sorry, your account balance is insufficient', data: null }),
      ],
      [
        'MiniMax, in a 200',
        status(200, { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }),
      ],
      [
        'xAI, as 403',
        status(403, {
          code: 'The caller does not have permission',
          error: 'Your team has either used all available credits or reached its monthly spending limit.',
        }),
      ],
      [
        'Qwen, as 400',
        status(400, {
          code: 'Arrearage',
          message: 'Access denied, please make sure your account is in good standing.',
        }),
      ],
      ['a trial', status(400, named('Your free trial has ended. Please upgrade your plan.', 'e'))],
      [
        'a limit of use',
        status(400, named('You have reached your monthly usage limit for this API key.', 'e')),
      ],
      ['Tencent', status(400, named('资源包余量不足，请购买', 'e'))],
    ],
  },
  {
    kind: 'bad key',
    ...next,
    answers: [
      ['401', status(401)],
      [
        'Gemini, as 400',
        status(400, [
          {
            error: {
              code: 400,
              message: 'API key not valid. Please pass a valid API key.',
              status: 'INVALID_ARGUMENT',
              details: [{ reason: 'API_KEY_INVALID' }],
            },
          },
        ]),
      ],
      [
        'xAI, as 400',
        status(400, {
          code: 'Client specified an invalid argument',
          error: 'Incorrect API key provided: xa***xx.',
        }),
      ],
      [
        'Anthropic, as 400',
        status(400, {
          type: 'error',
          error: { type: 'invalid_request_error', message: 'This organization has been disabled.' },
        }),
      ],
      [
        'MiniMax, in a 200',
        status(200, {
          base_resp: { status_code: 1004, status_msg: 'login fail: Please carry the API secret key' },
        }),
      ],
      ['OpenRouter, as 400', status(400, named('No auth credentials found', 'e'))],
      ['new-api, as 400', status(400, named('Token expired or incorrect', 'e'))],
    ],
  },
  {
    kind: 'unknown model',
    ...next,
    answers: [
      ['404', status(404)],
      ['405', status(405)],
      ['a redirect', status(302, '', { location: '/login' })],
      ['410', status(410, named('The model has been sunset', 'e'))],
      [
        'DeepSeek, as 400',
        status(400, named('Model Not Exist', 'invalid_request_error', 'invalid_request_error')),
      ],
      [
        'OpenRouter, as 400',
        status(400, { error: { message: 'm1 is not a valid model ID', code: 400 }, user_id: 'u' }),
      ],
      ['Zhipu, as 400', status(400, { error: { code: '1211', message: '模型不存在，请检查模型代码。' } })],
      ['deprecated, as 400', status(400, named('The model `m1` has been deprecated', 'e'))],
      ['a region', status(400, named('User location is not supported for the API use.', 'e'))],
    ],
  },
  {
    kind: 'timeout',
    ...next,
    answers: [
      ['no headers', failure('stall_headers')],
      ['headers and no body', failure('stall_body')],
      ['comments and no content', failure('drip')],
      ['408', status(408)],
      ['504 of a gateway', status(504, 'upstream request timeout')],
    ],
  },
  {
    kind: 'cut stream',
    ...next,
    answers: [
      ['the connection breaks', failure('cut')],
      ['a reset before the headers', failure('reset')],
      ['an end without a finish', failure('end_without_finish')],
      ['an event that is no JSON', failure('garbage_sse')],
    ],
  },
  {
    kind: 'refused schema',
    shared: 'm1 after 2',
    two: 'm1 after 2',
    answers: [
      [
        'OpenAI',
        refusedSchema(
          400,
          named(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            'invalid_request_error',
          ),
        ),
      ],
      [
        'words without the field',
        refusedSchema(400, { message: 'Structured outputs are not supported for this model' }),
      ],
      [
        'llama.cpp',
        refusedSchema(500, {
          error: { code: 500, message: 'Failed to compile grammar', type: 'server_error' },
        }),
      ],
      ['a Chinese gateway', refusedSchema(422, { code: 20015, message: '该模型不支持结构化输出' })],
      ['another one', refusedSchema(400, { error: { message: '不支持json格式输出' } })],
      ['spaces', refusedSchema(400, named('Only response format of type text is supported', 'e'))],
      ['vLLM', refusedSchema(400, { message: 'guided_json is not supported by this backend' })],
      ['a keyword', refusedSchema(400, named("The 'anyOf' keyword isn't permitted in schemas", 'e'))],
      ['a limit', refusedSchema(400, named('JSON Schema depth exceeds 5 levels', 'e'))],
      ['Ollama', refusedSchema(400, { error: 'json: field ChatRequest.format must be a string' })],
    ],
  },
]

/** Beside the twelve: whose answers another model may or may not be asked for. */
const others: readonly Kind[] = [
  {
    kind: "the model's own bad output",
    shared: 'm2 after 3',
    two: 'm2 after 3',
    answers: [
      [
        'Groq',
        status(400, {
          error: {
            message: "Failed to call a function. See 'failed_generation'.",
            type: 'invalid_request_error',
            code: 'tool_use_failed',
            failed_generation: '<function=x>',
          },
        }),
      ],
      [
        'Groq, as an event',
        event({
          error: { message: 'Failed to generate JSON.', code: 'json_validate_failed', status_code: 400 },
        }),
      ],
      [
        'Groq, another code',
        status(
          400,
          named(
            'Parsing failed. The model generated output that could not be parsed.',
            'invalid_request_error',
            'output_parse_failed',
          ),
        ),
      ],
      [
        'Ollama, as 500',
        status(
          500,
          named('error parsing tool call: raw=\'{"a":\', err=unexpected end of JSON input', 'api_error'),
        ),
      ],
    ],
  },
  {
    kind: 'an error page',
    ...next,
    answers: [
      ['in a 200', failure('garbage')],
      [
        'as 403',
        status(
          403,
          '<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>',
        ),
      ],
      ['as 400', status(400, '<html><body><h1>400 Bad Request</h1></body></html>')],
      ['as 500', status(500, '<html><body>Application error</body></html>')],
    ],
  },
  {
    kind: 'too long a prompt',
    ...next,
    answers: [
      [
        'Gemini',
        status(
          400,
          named(
            'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
            'e',
          ),
        ),
      ],
      ['Bedrock', status(400, named('Input is too long for requested model.', 'e'))],
      ['TGI', status(422, named('`inputs` must have less than 4096 tokens. Given: 5000', 'e'))],
      ['Groq', status(400, named('Please reduce the length of the messages or completion.', 'e'))],
      ['a Chinese vendor', status(400, named('输入长度超过模型最大上下文长度限制', 'e'))],
      ['OpenAI', status(400, named('too long', 'invalid_request_error', 'context_length_exceeded'))],
      [
        'Anthropic',
        status(400, {
          type: 'error',
          error: {
            type: 'invalid_request_error',
            message: 'prompt is too long: 210000 tokens > 200000 maximum',
          },
        }),
      ],
      [
        'a proxy, as 413',
        status(413, '<html><head><title>413 Request Entity Too Large</title></head></html>'),
      ],
      [
        'vLLM, as an event',
        event({
          object: 'error',
          message: 'Input is longer than the context window: 9000 exceeds 8192',
          code: 400,
        }),
      ],
    ],
  },
  {
    kind: 'a content filter',
    shared: 'model_content_filtered after 1',
    two: 'model_content_filtered after 1',
    answers: [
      [
        'Azure',
        status(400, {
          error: {
            message: 'The response was filtered',
            code: 'content_filter',
            innererror: { code: 'ResponsibleAIPolicyViolation' },
          },
        }),
      ],
      [
        'DeepSeek',
        status(400, named('Content Exists Risk', 'invalid_request_error', 'invalid_request_error')),
      ],
      [
        'Zhipu',
        status(400, { error: { code: '1301', message: '系统检测到输入或生成内容可能包含不安全或敏感内容' } }),
      ],
      [
        'OpenAI',
        status(
          400,
          named(
            'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
            'invalid_request_error',
            'invalid_prompt',
          ),
        ),
      ],
    ],
  },
  {
    kind: 'a real 400',
    shared: 'model_bad_request after 1',
    two: 'm2 after 2',
    answers: [
      [
        'OpenAI',
        status(400, named("Invalid value for 'temperature'", 'invalid_request_error', 'invalid_value')),
      ],
      [
        '422',
        status(422, {
          detail: [{ loc: ['body', 'top_k'], msg: 'extra fields not permitted', type: 'value_error.extra' }],
        }),
      ],
      [
        'Mistral',
        status(400, {
          object: 'error',
          message: 'Expected last role User or Tool but got assistant',
          type: 'invalid_request_message_order',
          code: '3230',
        }),
      ],
      [
        'Gemini',
        status(400, [
          { error: { code: 400, message: 'Invalid JSON payload received.', status: 'INVALID_ARGUMENT' } },
        ]),
      ],
      ['451', status(451)],
    ],
  },
]

describe('which model answers after how many requests', () => {
  test('is known for each of twelve kinds of answers, on a shared endpoint and on two', async () => {
    const rows: string[] = []
    for (const { kind, answers } of kinds) {
      const [, plain] = answers[0] as (typeof answers)[number]
      const cells = [await play(plain, 'shared'), await play(plain, 'two')]
      rows.push(`| ${[kind, ...cells.map(({ answered }) => answered)].join(' | ')} |`)
    }
    expect(rows).toEqual(kinds.map(({ kind, shared, two }) => `| ${kind} | ${shared} | ${two} |`))
  })

  describe.each([...kinds, ...others])('$kind', ({ answers, shared, two }) => {
    test.each(answers.map(([wording, answer]) => [wording, answer] as const))('%s', async (_, answer) => {
      expect((await play(answer, 'shared')).answered).toBe(shared)
      expect((await play(answer, 'two')).answered).toBe(two)
    })
  })
})

describe('a call whose run has no time left', () => {
  test('does not wait for a vendor that is down, and says that a later call may be answered', async () => {
    const { answered, call } = await play(status(503), 'shared', { model: 'm1', timeLeftMs: 0 })
    expect(answered).toBe('model_unavailable after 1')
    expect((await failureOf(call)).detail).toHaveProperty('wait_ms')
  })
})

describe('the error that a business sees', () => {
  const failureOfM1 = async (answer: Answer, layout: Layout = 'shared') => {
    const { call, route } = await play(answer, layout, { model: 'm1', patienceMs: 0 })
    return { error: await failureOf(call), route }
  }

  test.each([
    ['402', status(402)],
    [
      'Moonshot',
      status(
        429,
        named('Your account is suspended due to insufficient balance', 'exceeded_current_quota_error'),
      ),
    ],
  ])('names the balance of the key, whose reason admins see: %s', async (_, answer) => {
    const { error, route } = await failureOfM1(answer)
    expect(error.message).toContain('the account of our key has no balance or quota left')
    expect(error.detail).not.toHaveProperty('wait_ms')
    expect(route.health.stateOf('key', 'k1')).toMatchObject({ state: 'disabled' })
  })

  test('has the first words of a page, without addresses, and the run may wait', async () => {
    const page = '<html><head><title>502 Bad Gateway at 10.0.0.7 (edge-3.inner.example)</title></head></html>'
    for (const answer of [status(502, page), status(200, page)]) {
      const { error } = await failureOfM1(answer)
      expect(error.message).toContain('web page: "502 Bad Gateway at …')
      expect(error.message).not.toMatch(/10\.0\.0\.7|inner\.example/)
      expect(error.detail).toMatchObject({ wait_ms: 0 })
    }
  })

  test('has the wait that a body states', async () => {
    for (const [body, ms] of [
      [named('Please try again in 6m12.5s.', 'requests', 'rate_limit_exceeded'), 372_500],
      [{ error: { message: 'busy', details: [{ retryDelay: '34s' }] } }, 34_000],
      [{ detail: 'slow down', retry_after: 30 }, 30_000],
      [{ error: '请在 20 秒后重试' }, 20_000],
      [{ message: 'Too many requests, retry after 1500 ms' }, 1500],
    ] as const) {
      const { error } = await failureOfM1(status(429, body))
      expect(error.detail).toMatchObject({ retry_after_ms: ms })
    }
  })

  test.each([
    [
      'headers of limits, the one that is used up',
      {
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-remaining-requests': '9',
        'x-ratelimit-reset-tokens': '6m0s',
        'x-ratelimit-remaining-tokens': '0',
      },
      undefined,
      360_000,
    ],
    [
      'headers of limits, none of them known to be',
      { 'x-ratelimit-reset-requests': '250ms', 'x-ratelimit-reset-tokens': '2s' },
      undefined,
      250,
    ],
    [
      'a header in milliseconds, before all else',
      { 'retry-after-ms': '1500', 'retry-after': '9', 'x-ratelimit-reset': '60' },
      { retry_after: 30 },
      1500,
    ],
    ['a header with a unit', { 'retry-after': '20s' }, undefined, 20_000],
    [
      'a body, before the limits',
      { 'x-ratelimit-reset-tokens': '6m0s' },
      { error: { details: [{ retryDelay: '37s' }] } },
      37_000,
    ],
    ['words of a body', {}, { error: 'Try again in 1 minute and 20 seconds' }, 80_000],
    ['other words', {}, { error: '请等待 30 秒' }, 30_000],
  ] as const)('has the wait of %s', async (_, headers, body, ms) => {
    const { error } = await failureOfM1(status(429, body, headers))
    expect(error.detail).toMatchObject({ retry_after_ms: ms })
  })

  test('has the wait until a time that a vendor names', async () => {
    for (const [headers, body] of [
      [{ 'retry-after': 'TIME' }],
      [{ 'anthropic-ratelimit-tokens-reset': 'TIME', 'anthropic-ratelimit-tokens-remaining': '0' }],
      [{}, { error: { message: 'busy', metadata: { headers: { 'X-RateLimit-Reset': 'TIME' } } } }],
      [{}, { error: 'Your limit resets at TIME.' }],
    ] as const) {
      // whole seconds, and the clock goes on
      const at = new Date(Math.ceil(Date.now() / 1000) * 1000 + 540_000)
      const named = 'retry-after' in headers ? at.toUTCString() : at.toISOString()
      const fill = (value: unknown) => value && JSON.parse(JSON.stringify(value).replace('TIME', named))
      const { error } = await failureOfM1(status(429, fill(body), fill(headers)))
      const { retry_after_ms = 0 } = error.detail as { retry_after_ms?: number }
      expect(retry_after_ms).toBeGreaterThan(500_000)
      expect(retry_after_ms).toBeLessThanOrEqual(541_000)
    }
  })

  test('has no wait of a limit where the error is another one: vendors send limits with each reply', async () => {
    const headers = { 'x-ratelimit-reset-tokens': '6m0s', 'x-ratelimit-remaining-tokens': '0' }
    const { error } = await failureOfM1(status(500, undefined, headers))
    expect(error.detail).not.toHaveProperty('retry_after_ms')
  })

  test('is that of too long a prompt, where all models refuse it, each asked once', async () => {
    const route = openRoute(twoModels(server.baseUrl, 'shared'))
    server.script(({ body }) => ({
      failure: { status: 400, body: named(`no ${String(body.model)}`, 'e', 'context_length_exceeded') },
    }))
    const error = await failureOf(callWith(route, { role: 'planner' }))
    expect(error).toMatchObject({ code: 'model_context_too_long', detail: { attempts: 2 } })
    expect(error.message).toContain('answered 400: no m1')
  })

  test('is that of too long a prompt at once, though another key of the model is at its limit', async () => {
    const { models, keys } = twoModels(server.baseUrl, 'shared')
    const route = openRoute({ models: models.slice(0, 1), keys: [...keys, key('k2', 'v1')] })
    let requests = 0
    server.script(() => {
      requests += 1
      if (requests === 1) return { failure: { status: 429 } }
      return { failure: { status: 400, body: named('too long', 'e', 'context_length_exceeded') } }
    })
    const error = await failureOf(callWith(route, { role: 'planner' }))
    expect(error).toMatchObject({ code: 'model_context_too_long', detail: { attempts: 2 } })
  })

  test.each([
    ['registry.ollama.ai/library/m1:latest does not support tools', '36'],
    ['The `tools` parameter is not supported with this model.', '36'],
    ["This model doesn't support image input.", '36'],
    ["Function 'search' with argument location is not supported", null],
  ])('is not that of a model that cannot do it, where one of its vendor can: %s', async (words, answer) => {
    const route = openRoute(twoModels(server.baseUrl, 'shared'))
    server.script(({ body }) =>
      body.model === 'm1' ? { failure: { status: 400, body: named(words, 'api_error') } } : { text: '36' },
    )
    const reply = await callWith(route, { role: 'planner' }).catch(() => null)
    expect(reply?.result.text ?? null).toBe(answer)
    expect(route.health.stateOf('model', 'm1')).toBeNull()
  })

  test('is its own 400, where the other vendor refuses the request too', async () => {
    const route = openRoute(twoModels(server.baseUrl, 'two'))
    server.script(({ body }) => ({
      failure: { status: 400, body: named(`no ${String(body.model)}`, 'invalid_value') },
    }))
    const error = await failureOf(callWith(route, { role: 'planner' }))
    expect(error).toMatchObject({ code: 'model_bad_request', detail: { attempts: 2 } })
    expect(error.message).toContain('answered 400: no m1')
  })
})

describe('what a request may have caused', () => {
  test('disables no key for others: words that the vendor quotes from the prompt', async () => {
    const answer = status(
      400,
      named('Invalid message: "my balance is insufficient"', 'invalid_request_error'),
    )
    const ask = { messages: [{ role: 'user' as const, content: 'Say: my balance is insufficient!' }] }
    const { route } = await play({ ...answer, ask }, 'two')
    expect(route.health.stateOf('key', 'k1')).toBeNull()
    const parameters = { type: 'object', properties: {} }
    const tools = [{ name: 'pay', description: 'Tells that "my balance is insufficient".', parameters }]
    const { route: offering } = await play({ ...answer, ask: { tools } }, 'two')
    expect(offering.health.stateOf('key', 'k1')).toBeNull()
    const { route: other } = await play(answer, 'two')
    expect(other.health.stateOf('key', 'k1')).toMatchObject({ state: 'disabled' })
  })
})

test('a key that a gateway refuses for one model stays good for the next one', async () => {
  const { route } = await play(status(401), 'shared')
  expect(route.health.stateOf('key', 'k1')).toBeNull()
  expect(route.health.stateOf('key_model', 'k1 mod_m1')).toMatchObject({ state: 'disabled' })
})

test('a call asks each candidate twice and eight in all', async () => {
  const { models, keys } = twoModels(server.baseUrl, 'shared')
  const many = [...models, ...models, ...models].map((one, at) => ({
    ...one,
    id: `mod_${at}`,
    name: `n${at}`,
  }))
  const route = openRoute({ models: many, keys })
  const asked: string[] = []
  server.script(({ body }) => {
    asked.push(String(body.model))
    return { failure: { status: 500 } }
  })
  await failureOf(callWith(route, { role: 'planner' }))
  expect(asked).toEqual(['m1', 'm2', 'm1', 'm2', 'm1', 'm2', 'm1', 'm2'])
})

test.each(['stall_headers', 'drip'] as const)(
  'a silent model leaves time for the rest of the route: %s',
  async (failure) => {
    const { models, keys } = twoModels(server.baseUrl, 'shared')
    const timeouts = { firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 }
    const route = openRoute({
      models: models.map((one) => ({ ...one, endpoint: { ...one.endpoint, timeouts } })),
      keys,
    })
    server.script(({ body }) => {
      if (body.model !== 'm1') return { text: 'fine' }
      setTimeout(() => route.clock.jump(31_000), 20)
      return { failure }
    })
    expect((await callWith(route, { role: 'planner' })).model).toBe('m2')
  },
)

test('the only model of a route cools for 5 s at most, one of two for longer', async () => {
  server.script(({ body }) => (body.model === 'm1' ? { failure: { status: 500 } } : { text: 'fine' }))
  const coolingOf = async (count: number): Promise<number | null> => {
    const { models, keys } = twoModels(server.baseUrl, 'two')
    const cooling = { baseMs: 60_000, maxMs: 60_000 }
    const route = openRoute({ models: models.slice(0, count), keys }, { cooling })
    for (const business_id of ['a', 'b']) {
      const caller = { business_id, user_id: null, run_id: null }
      await callWith(route, { role: 'planner', patienceMs: 0 }, { caller }).catch(() => {})
    }
    return route.health.dueInMs('model', 'mod_m1')
  }
  expect(await coolingOf(2)).toBeGreaterThan(29_000)
  expect(await coolingOf(1)).toBeLessThanOrEqual(5000)
})
