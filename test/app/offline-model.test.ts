import { describe, expect, test } from 'vitest'
import { offlineEntry, withOfflineModel } from '../../src/app/offline-model.ts'
import { part, promptText, titles } from '../../src/context/sections.ts'
import type { Provider, ProviderRequest } from '../../src/models/ports/model-ports.ts'
import { ownText } from '../../src/state/provenance.ts'
import { openTestModels } from '../support/models.ts'
import * as entries from '../support/registry-view.ts'

const parts = [part(titles.request, ownText`What is 2 + 3?`, 'user')]
const messages = [{ role: 'user' as const, content: promptText(parts) }]
const tools = [{ name: 'calculate', description: 'Computes', parameters: { type: 'object' } }]
const signal = AbortSignal.timeout(20_000)

describe('the provider of the offline model', () => {
  const refused: Provider = { send: () => Promise.reject(new Error('sent to a vendor')) }
  const at = (base_url: string, deltas: string[] = []): ProviderRequest => ({
    model: entries.model('m', { endpoint: entries.endpoint('e', { base_url }) }),
    key: null,
    ask: {
      role: 'planner',
      messages,
      parts,
      tools,
      schema: null,
      input: [],
      query: null,
      prompt: null,
      parameters: {},
      stream: true,
    },
    endsAtMs: 0,
    usedIds: [],
    onDelta: ({ text }) => deltas.push(text),
  })

  test('answers at its own address, with calls, its text as it comes and an estimate of tokens', async () => {
    const deltas: string[] = []
    const outcome = await withOfflineModel(refused).send(at(offlineEntry.base_url, deltas), signal)
    if (!outcome.ok) throw new Error('no outcome')
    const { text, tool_calls, finish, model, usage } = outcome.result
    expect({ finish, model }).toEqual({ finish: 'tool_calls', model: 'mason-offline' })
    expect(tool_calls).toMatchObject([{ name: 'calculate', arguments: '{"expression":"2 + 3"}' }])
    expect(deltas.join('')).toBe(text)
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
  })

  test('reads the last message where a prompt has no parts', async () => {
    const { parts: _, ...ask } = at(offlineEntry.base_url).ask
    const asked = {
      ...at(offlineEntry.base_url),
      ask: { ...ask, messages: [{ role: 'user' as const, content: '4 * 5' }] },
    }
    const outcome = await withOfflineModel(refused).send(asked, signal)
    expect(outcome).toMatchObject({ result: { tool_calls: [{ arguments: '{"expression":"4 * 5"}' }] } })
  })

  test('leaves other addresses to the other provider, and stops when its caller has gone', async () => {
    const offline = withOfflineModel(refused)
    await expect(offline.send(at('https://vendor.example/v1'), signal)).rejects.toThrow('sent to a vendor')
    const gone = AbortSignal.abort(new Error('gone'))
    await expect(offline.send(at(offlineEntry.base_url), gone)).rejects.toThrow('gone')
  })
})

test('a vendor gets the text of the parts and not the parts', async () => {
  const bodies: string[] = []
  const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
    bodies.push(String(init?.body))
    return Response.json({
      choices: [{ message: { role: 'assistant', content: 'Five.' }, finish_reason: 'stop' }],
    })
  }
  const { models } = openTestModels({
    baseUrl: 'http://vendor.example/v1',
    fetch: fetch as typeof globalThis.fetch,
  })
  const reply = await models.call({ role: 'planner', messages, parts, tools }, signal)
  expect(reply.text).toBe('Five.')
  expect(JSON.parse(bodies[0] ?? '')).toMatchObject({
    messages: [{ role: 'user', content: '# Request\nWhat is 2 + 3?' }],
  })
  expect(bodies.join('')).not.toMatch(/"parts"|"origin"/)
})
