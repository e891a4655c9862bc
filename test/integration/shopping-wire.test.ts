import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { intentMandateSchema } from '../../src/payments/mandates/v1/types.ts'
import { readBy } from '../../src/payments/mandates/violations.ts'
import { readReplyParts } from '../../src/payments/runs/reply-parts.ts'
import type { Json } from '../../src/state/runtime-state.ts'
import { unique } from '../support/backend.ts'
import { runtimeTest } from '../support/integration-test.ts'

/** What was on the wire in the demo of AP2, and what its extension document lists, at our own agent. */

const read = (file: string) => readFileSync(new URL(`../payments/${file}`, import.meta.url), 'utf8')
type Message = { parts: { data?: { [key: string]: Json } }[]; taskId?: string; contextId?: string }
type Call = { to: string; body: { params: { message: Message } } }
const demo: Call[] = JSON.parse(read('demo-messages.json'))
const listings = ['intent-mandate', 'cart-mandate', 'payment-mandate'].map((name) => ({
  name,
  message: JSON.parse(read(`mandates/v1/listings/${name}.sample`)) as Message,
}))

const test = runtimeTest.extend('send', { scope: 'file' }, async ({ runtime, server, model }) => {
  const business = unique('merchant')
  const skills = [{ id: 'search_catalog', name: 'Search', description: 'Finds products', tags: ['shop'] }]
  await runtime.admin.agentCards.put(business, {
    ...{ name: 'Coffee shop', description: 'Sells coffee makers', skills, version: '1.0.0' },
    roles: ['merchant'],
  })
  const { token } = await runtime.admin.tokens.create({
    ...{ business_id: business, label: 'x', roles: ['agent'] },
  })
  return async (message: object) => {
    model.reset()
    model.script({ planner: [{ text: 'Done.' }] } as never)
    const json = {
      ...{ jsonrpc: '2.0', id: 1, method: 'message/send' },
      params: { configuration: { blocking: true }, message },
    }
    const headers = { 'X-A2A-Extensions': 'https://github.com/google-agentic-commerce/ap2/v1' }
    return (await server.call('POST', `/a2a/agents/${business}`, { token, headers, json })).body
  }
})

describe('our agent', () => {
  test('takes the eleven messages of the demo as they were on the wire; a task of others is not found', async ({
    send,
  }) => {
    expect(demo).toHaveLength(11)
    for (const { body } of demo) {
      const { taskId, ...message } = body.params.message
      if (taskId !== undefined)
        expect((await send({ ...message, taskId })).error).toMatchObject({ code: -32001 })
      expect(await send(message)).toMatchObject({ result: { kind: 'task', status: { state: 'completed' } } })
    }
  }, 240_000)

  test.for(listings)('takes the listing $name in an envelope of ours', async ({ message }, { send }) => {
    const { parts, taskId, contextId } = message
    const own = { kind: 'message', messageId: randomUUID(), role: 'user', parts }
    expect((await send({ ...own, taskId: taskId ?? 'sample-payment-task', contextId })).error).toMatchObject({
      code: -32001,
    })
    const answer = await send({ ...own, messageId: randomUUID(), contextId: contextId ?? 'ours' })
    expect(answer).toMatchObject({ result: { kind: 'task', status: { state: 'completed' } } })
  })
})

describe('the extension document', () => {
  test('lists an intent that is valid at its date, and a cart that is an offer (AP2.md 1.5, rows 6 and 7)', () => {
    const [intent, cart] = listings.map(({ message }) =>
      message.parts.flatMap(({ data }) => (data ? [data] : [])),
    )
    const value = readBy(intentMandateSchema, JSON.stringify(intent?.[0]?.['ap2.mandates.IntentMandate']))
    expect(value).toMatchObject({ ok: true, value: { requires_refundability: true } })
    expect(value.ok && Date.parse(value.value.intent_expiry) > Date.parse('2025-08-26T19:36:36Z')).toBe(true)
    expect(readReplyParts(cart ?? [])).toMatchObject({
      offers: [
        { cart_id: 'cart_shoes_123', label: 'Cool Shoes Max', total: { text: '$120.00' }, signed: null },
      ],
      problems: [expect.stringContaining('cart_expiry is missing')],
      risk_data: expect.any(String),
    })
  })
})
