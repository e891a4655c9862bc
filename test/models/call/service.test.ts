import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ownText } from '../../../src/state/provenance.ts'
import { type FakeModel, startFakeModel } from '../../support/fake-model/fake-model.ts'
import { ask, createCountingClock, never, openTestModels, patient, quickRetry } from '../../support/models.ts'
import { openModels } from '../../support/one-server.ts'

let server: FakeModel
beforeEach(async () => {
  server = await startFakeModel()
})
afterEach(async () => {
  await server.close()
})

describe('a model call', () => {
  it('streams text, and returns it with usage, finish and model', async () => {
    server.script({ planner: [{ text: 'Hello, Wörld 👋', reasoning: 'greet back' }] })
    const heard: [string, number][] = []
    const { models } = openTestModels(server)
    const reply = await models.call(ask({ onText: (text, attempt) => heard.push([text, attempt]) }), never())
    expect(reply).toEqual({
      text: 'Hello, Wörld 👋',
      reasoning: 'greet back',
      tool_calls: [],
      finish: 'stop',
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      model: 'fake-model',
      by: 'fake-model',
    })
    expect(heard.length).toBeGreaterThan(1)
    expect(heard.map(([text]) => text).join('')).toBe('Hello, Wörld 👋')
    expect(heard.every(([, attempt]) => attempt === 1)).toBe(true)
  })

  it('sends its reasoning back with its calls, and with nothing else', async () => {
    const { models } = openTestModels(server)
    const said = {
      role: 'assistant',
      content: ownText`x`,
      reasoning: { text: ownText`why`, by: 'fake-model' },
    } as const
    const tool_calls = [{ id: 'call_1', name: ownText`t`, arguments: ownText`{}` }]
    const messages = [
      said,
      { ...said, tool_calls },
      { role: 'tool', content: ownText`y`, tool_call_id: 'call_1' },
    ] as const
    await models.call(ask({ messages }), never())
    const sent = server.requests('planner')[0]?.body.messages as Record<string, unknown>[]
    expect(sent.map(({ reasoning_content }) => reasoning_content)).toEqual([undefined, 'why', undefined])
    expect(sent[1]).not.toHaveProperty('reasoning')
  })

  it('names the user and asks for usage, with no other header than it needs', async () => {
    const { models } = openTestModels(server)
    await models.call(ask({ role: 'output' }), never())
    const [request] = server.requests('output')
    expect(request?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } })
    expect(request?.body).not.toHaveProperty('tools')
    expect(request?.headers).toMatchObject({
      'x-mason-role': 'output',
      authorization: 'Bearer sk-test-secret-0123456789',
      'user-agent': 'mason',
    })
    expect(Object.keys(request?.headers ?? {}).filter((name) => /stainless|exchange/.test(name))).toEqual([])
  })

  it('sends no authorization when there is no key, and uses the model that is asked for', async () => {
    const models = openModels({
      baseUrl: server.baseUrl,
      model: 'm',
      models: ['another'],
      clocks: patient,
      retry: quickRetry,
      clock: createCountingClock(),
    })
    const reply = await models.call(ask({ model: 'another' }), never())
    expect(reply.model).toBe('another')
    expect(server.requests()[0]?.headers).not.toHaveProperty('authorization')
    expect(server.requests()[0]?.body.model).toBe('another')
  })

  it('describes itself without secrets', () => {
    const { models } = openTestModels({ baseUrl: 'http://localhost:1/v1/?token=abc' })
    expect(models.describe()).toEqual({
      name: 'fake-model',
      capabilities: [],
      base_url: 'http://localhost:1/v1',
    })
    expect(models.hasModel('fake-model')).toBe(true)
    expect(models.hasModel('gpt-x')).toBe(false)
  })

  it('keeps a query of the base URL', async () => {
    const { models } = openTestModels({ baseUrl: `${server.baseUrl}/?api-version=1` })
    await expect(models.call(ask(), never())).resolves.toMatchObject({ text: 'Done.' })
  })

  it('leaves no timer and no listener behind', async () => {
    server.script({
      planner: [{ failure: 'cut', text: 'abc' }, { failure: { status: 500 } }, { text: 'fine' }],
    })
    const { models, clock } = openTestModels(server)
    const signal = never()
    let listeners = 0
    const count = (by: number) => {
      listeners += by
    }
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      count(1)
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      count(-1)
      removeEventListener.apply(signal, args)
    }
    await models.call(ask(), signal)
    await new Promise(setImmediate)
    expect(clock.sleeping()).toBe(0)
    expect(listeners).toBe(0)
  })
})

describe('a JSON answer', () => {
  const schema = {
    type: 'object',
    properties: {
      goal: { type: 'string' },
      steps: { type: 'array', items: { type: 'integer' }, minItems: 1 },
    },
    required: ['goal', 'steps'],
    additionalProperties: false,
  }
  const refuse = {
    failure: { status: 400, body: { error: { message: "'response_format' is not supported" } } },
  }

  it('is asked for by schema, strictly where the schema allows it', async () => {
    const { models } = openTestModels(server)
    const reply = await models.call(ask({ role: 'understand', schema }), never())
    expect(JSON.parse(reply.text)).toEqual({ goal: 'ok', steps: [1] })
    const open = { ...schema, required: ['goal'] }
    await models.call(ask({ role: 'understand', schema: open }), never())
    const formats = server.requests().map((request) => request.body.response_format)
    expect(formats).toEqual([
      { type: 'json_schema', json_schema: { name: 'understand', schema, strict: true } },
      { type: 'json_schema', json_schema: { name: 'understand', schema: open, strict: false } },
    ])
  })

  it('falls back to json_object with the schema in the prompt, and remembers that', async () => {
    server.script({ reflection: [refuse, { text: '{"goal":"g"}' }] })
    const { models } = openTestModels({
      baseUrl: server.baseUrl,
      retry: { attempts: 1, baseMs: 1, maxMs: 1 },
    })
    const reply = await models.call(ask({ role: 'reflection', schema }), never())
    expect(reply.text).toBe('{"goal":"g"}')
    const [first, second] = server.requests()
    expect(first?.body.response_format).toMatchObject({ type: 'json_schema' })
    expect(second?.body.response_format).toEqual({ type: 'json_object' })
    expect(second?.messages[0]?.content).toContain(JSON.stringify(schema))
    expect(second?.messages).toHaveLength(2)
    await models.call(ask({ role: 'reflection', schema }), never())
    expect(server.requests()[2]?.body.response_format).toEqual({ type: 'json_object' })
  })

  it('is asked for in words alone when json_object is refused too, and then fails for good', async () => {
    server.script({ output: [refuse, refuse, { text: '{}' }], understand: [refuse] })
    const { models } = openTestModels(server)
    await expect(models.call(ask({ role: 'output', schema }), never())).resolves.toMatchObject({ text: '{}' })
    expect(server.requests()[2]?.body).not.toHaveProperty('response_format')
    await expect(models.call(ask({ role: 'understand', schema }), never())).rejects.toMatchObject({
      code: 'model_bad_request',
      detail: { status: 400, attempts: 3 },
    })
  })
})
