import { expect, test } from 'vitest'
import { part, promptText, titles } from '../../../src/context/sections.ts'
import { ownText } from '../../../src/state/provenance.ts'
import { openTestModels } from '../../support/models.ts'

const parts = [part(titles.request, ownText`What is 2 + 3?`, 'user')]
const messages = [{ role: 'user' as const, content: promptText(parts) }]
const tools = [{ name: 'calculate', description: 'Computes', parameters: { type: 'object' } }]
const signal = AbortSignal.timeout(120_000)

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
