import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ask, never, openTestModels } from '../models.ts'
import { type FakeModel, startFakeModel } from './fake-model.ts'
import { sample } from './sample.ts'

describe('the fake model in its own process', () => {
  let child: ChildProcess
  let origin: string
  const control = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${origin}${path}`, {
      method,
      body: body === undefined ? null : JSON.stringify(body),
    })
    expect(response.status).toBe(200)
    return response.json()
  }
  beforeEach(async () => {
    const file = new URL('./fake-model.ts', import.meta.url).pathname
    child = spawn(process.execPath, ['--import', 'tsx', file, '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (child.stdout === null) throw new Error('no stdout')
    const [line] = await once(createInterface(child.stdout), 'line')
    origin = `http://127.0.0.1:${JSON.parse(line).port}`
  })
  afterEach(async () => {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })

  it('plays a script, reports its requests, holds and releases replies, and resets', async () => {
    await control('POST', '/__script', { planner: [{ text: 'one' }, { text: 'held', hold: 'gate' }] })
    const { models } = openTestModels({ baseUrl: `${origin}/v1` })
    await expect(models.call(ask(), never())).resolves.toMatchObject({ text: 'one' })

    const second = models.call(ask(), never())
    const requests = await control('GET', '/__requests?role=planner&at_least=2')
    expect(requests).toMatchObject([{ nth: 1 }, { nth: 2, headers: { 'x-mason-role': 'planner' } }])
    await expect.poll(() => control('GET', '/__held')).toEqual({ held: 1 })
    expect(await control('POST', '/__release?name=other')).toEqual({ released: 0 })
    expect(await control('POST', '/__release')).toEqual({ released: 1 })
    await expect(second).resolves.toMatchObject({ text: 'held' })

    await control('POST', '/__reset')
    expect(await control('GET', '/__requests')).toEqual([])
    await expect(models.call(ask(), never())).resolves.toMatchObject({ text: 'Done.' })
    expect(await control('GET', '/v1/models')).toMatchObject({ data: [{ id: 'fake-model' }] })
  })
})

describe('the fake model in process', () => {
  let server: FakeModel
  beforeEach(async () => {
    server = await startFakeModel()
  })
  afterEach(async () => {
    await server.close()
  })

  it('asks a function for each reply', async () => {
    server.script(async ({ role, nth, messages }) => ({ text: `${role} ${nth} ${messages.length}` }))
    const { models } = openTestModels(server)
    await models.call(ask(), never())
    await expect(models.call(ask(), never())).resolves.toMatchObject({ text: 'planner 2 2' })
  })

  it('answers also without streaming', async () => {
    const response = await fetch(`${server.baseUrl}/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', messages: [] }),
    })
    expect(await response.json()).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
      usage: { total_tokens: 15 },
    })
  })

  it('makes the smallest sensible JSON of a schema', () => {
    const schema = {
      type: 'object',
      required: ['kind', 'many', 'inner', 'maybe', 'day', 'yes'],
      properties: {
        kind: { enum: ['a', 'b'] },
        many: { type: 'array', items: { $ref: '#/$defs/one' }, minItems: 2 },
        inner: { $ref: '#/$defs/one' },
        maybe: { anyOf: [{ type: 'null' }, { type: 'string' }] },
        day: { type: 'string', format: 'date' },
        yes: { type: 'boolean' },
        extra: { type: 'string' },
      },
      $defs: { one: { type: 'object', required: ['n'], properties: { n: { type: 'integer', minimum: 3 } } } },
    }
    expect(sample(schema)).toEqual({
      kind: 'a',
      many: [{ n: 3 }, { n: 3 }],
      inner: { n: 3 },
      maybe: null,
      day: '2026-01-01',
      yes: true,
    })
  })
})
