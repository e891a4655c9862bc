import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FakeModel, type FakeReply, startFakeModel } from '../../../support/fake-model/fake-model.ts'
import { ask, failureOf, never, openTestModels, patient, wholeOf } from '../../../support/models.ts'
import type { OpenAIOptions } from '../../../support/one-server.ts'

let server: FakeModel
beforeEach(async () => {
  server = await startFakeModel()
})
afterEach(async () => {
  await server.close()
})

const call = (steps: readonly FakeReply[], options: Partial<OpenAIOptions> = {}, signal = never()) => {
  server.script({ planner: steps })
  return openTestModels({ baseUrl: server.baseUrl, ...options }).models.call(ask(), signal)
}
const failWith = (failure: FakeReply['failure'], options: Partial<OpenAIOptions> = {}) =>
  failureOf(call([{ text: 'abcdef', ...(failure === undefined ? {} : { failure }) }], options))

const noUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const named = (code: string, message = 'no') => ({ error: { message, type: 'invalid_request_error', code } })

describe('a status', () => {
  it.each([
    [401, 'model_unauthorized', 1],
    [402, 'model_unauthorized', 1],
    [403, 'model_unauthorized', 1],
    [404, 'model_bad_request', 1],
    [400, 'model_bad_request', 1],
    [422, 'model_bad_request', 1],
    [302, 'model_bad_request', 1],
    [413, 'model_context_too_long', 1],
    [408, 'model_timeout', 3],
    [409, 'model_unavailable', 3],
    [429, 'model_rate_limited', 3],
    [500, 'model_unavailable', 3],
    [502, 'model_unavailable', 3],
    [503, 'model_unavailable', 3],
    [529, 'model_unavailable', 3],
  ])('of %i is %s after %i requests', async (status, code, requests) => {
    const error = await failWith({ status })
    expect(error).toMatchObject({ code, detail: { status, attempts: requests, usage: noUsage } })
    expect(error.message).toContain(`answered ${status}`)
    expect(error.message).toContain('(model fake-model')
    expect(error.message).not.toContain(server.baseUrl)
    expect(wholeOf(error).message).toContain(`${server.baseUrl}, model fake-model`)
    expect(error.remedy).toBeTruthy()
    expect(server.requests()).toHaveLength(requests)
  })

  it.each([
    [400, named('context_length_exceeded'), 'model_context_too_long'],
    [400, named('', "This model's maximum context length is 8192 tokens"), 'model_context_too_long'],
    [500, named('exceed_context_size_error'), 'model_context_too_long'],
    [400, named('content_filter'), 'model_content_filtered'],
    [403, named('content_policy_violation'), 'model_content_filtered'],
    [429, named('insufficient_quota'), 'model_rate_limited'],
  ])('of %i with %j is not repeated: %s', async (status, body, code) => {
    expect(await failWith({ status, body })).toMatchObject({ code, detail: { status, attempts: 1 } })
  })

  it('is reported even when its body never ends', async () => {
    const stalled = createServer((_, response) => void response.writeHead(401).write('{"error":'))
    await new Promise<void>((resolve) => void stalled.listen(0, '127.0.0.1', resolve))
    const { port } = stalled.address() as AddressInfo
    const clocks = { ...patient, idleMs: 200 }
    const { models } = openTestModels({ baseUrl: `http://127.0.0.1:${port}/v1`, clocks })
    expect(await failureOf(models.call(ask(), never()))).toMatchObject({ code: 'model_unauthorized' })
    stalled.closeAllConnections()
    await new Promise((resolve) => void stalled.close(resolve))
  })

  it('that redirects is not followed, for the prompt and the key are meant for one server', async () => {
    const location = `${server.baseUrl}/elsewhere`
    const error = await failWith({ status: 307, headers: { location } })
    expect(error).toMatchObject({ code: 'model_bad_request', detail: { status: 307, attempts: 1 } })
    expect(error.remedy).toContain('OPENAI_BASE_URL')
  })

  it('whose text echoes the key does not show it', async () => {
    const apiKey = 'sk-test-secret-0123456789'
    const error = await failWith(
      { status: 401, body: named('invalid_api_key', `Wrong key: ${apiKey}`) },
      { apiKey },
    )
    expect(error.message).not.toContain('Wrong key')
    expect(wholeOf(error).message).toContain('Wrong key: [key]')
    expect(error.remedy).toContain('OPENAI_API_KEY')
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(apiKey)
  })
})

describe('a bad reply', () => {
  it.each([
    ['garbage', 'model_bad_reply'],
    ['garbage_sse', 'model_bad_reply'],
    ['no_choices', 'model_bad_reply'],
    ['cut', 'model_unavailable'],
    ['reset', 'model_unavailable'],
    ['end_without_finish', 'model_unavailable'],
  ] as const)(
    'of the kind %s is %s after 3 requests, and forgotten when the next one is good',
    async (failure, code) => {
      expect(await failWith(failure)).toMatchObject({ code, detail: { attempts: 3 } })
      server.reset()
      await expect(call([{ failure, text: 'bad' }, { text: 'good' }])).resolves.toMatchObject({
        text: 'good',
      })
      expect(server.requests()).toHaveLength(2)
    },
  )

  it.each([
    ['an empty body', '', 'model_bad_reply'],
    ['a list', '[1, 2]', 'model_bad_reply'],
    ['JSON that ends early', '{"choices": [', 'model_bad_reply'],
    ['choices of another shape', '{"choices": "none"}', 'model_bad_reply'],
    ['an error in a 200', { error: { message: 'busy', type: 'server_error' } }, 'model_unavailable'],
    ['an error with a status in a 200', { error: { message: 'slow down', code: 429 } }, 'model_rate_limited'],
    ['a comment and no event', ': hello\n\n', 'model_bad_reply'],
  ])('may be %s', async (_, body, code) => {
    const error = await failWith({ status: 200, body })
    expect(error).toMatchObject({ code, detail: { attempts: 3 } })
  })

  it('may be an error in the middle of the stream', async () => {
    const body = `data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: ${JSON.stringify(named('context_length_exceeded'))}\n\n`
    expect(await failWith({ status: 200, body })).toMatchObject({
      code: 'model_context_too_long',
      detail: { attempts: 1 },
    })
  })

  it('may be too large, and is then not asked for again', async () => {
    const error = await failWith('huge_line', { maxBytes: 1_000_000 })
    expect(error).toMatchObject({ code: 'model_bad_reply', detail: { attempts: 1 } })
  })

  it('may be withheld by a filter', async () => {
    const error = await failureOf(call([{ text: '', finish: 'content_filter' }]))
    expect(error).toMatchObject({ code: 'model_content_filtered', detail: { attempts: 1, usage } })
    await expect(call([{ text: 'half', finish: 'content_filter' }])).resolves.toMatchObject({
      text: 'half',
      finish: 'content_filter',
    })
  })

  it('is separated from text of the next attempt, and costs what is known', async () => {
    const heard: [string, number][] = []
    server.script({ planner: [{ text: 'bad', failure: 'cut_after_usage' }, { text: 'good' }] })
    const { models } = openTestModels(server)
    const reply = await models.call(ask({ onText: (text, attempt) => heard.push([text, attempt]) }), never())
    expect(reply.usage).toEqual({ prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 })
    const of = (attempt: number) => heard.filter(([, at]) => at === attempt).map(([text]) => text)
    expect('bad'.startsWith(of(1).join(''))).toBe(true)
    expect(of(1).length).toBeGreaterThan(0)
    expect(of(2).join('')).toBe('good')
    expect(await failWith('cut_after_usage')).toMatchObject({
      detail: { attempts: 3, usage: { prompt_tokens: 30, completion_tokens: 15, total_tokens: 45 } },
    })
  })
})

describe('a server that cannot be reached', () => {
  it('is unavailable after 3 attempts', async () => {
    // a port on which no process listens or can listen
    const { models } = openTestModels({ baseUrl: 'http://127.0.0.1:1/v1' })
    const error = await failureOf(models.call(ask(), never()))
    expect(error).toMatchObject({ code: 'model_unavailable', detail: { attempts: 3 } })
    expect(error.message).toBe(
      'the model server cannot be reached, or broke off (model fake-model, after 3 attempts)',
    )
    expect(wholeOf(error).message).toMatch(/could not be reached: .*ECONNREFUSED.*after 3 attempts/)
  })

  it('may throw anything from its fetch', async () => {
    const fetch = () => Promise.reject('no network')
    const error = await failureOf(call([], { fetch }))
    expect(error).toMatchObject({ code: 'model_unavailable', detail: { attempts: 3 } })
  })
})
