// backends: either

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { agentCardsRef } from '../../../src/features/a2a/a2a.ref.ts'
import { ap2Uris } from '../../../src/features/a2a/client/ap2.ts'
import { intentMandateSchema } from '../../../src/features/payments/mandates/v1/types.ts'
import { readBy } from '../../../src/features/payments/mandates/violations.ts'
import { readReplyParts } from '../../../src/features/payments/runs/reply-parts.ts'
import type { Json } from '../../../src/state/runtime-state.ts'
import { unique } from '../../support/backend.ts'
import { runtimeTest } from '../../support/integration-test.ts'

/** What was on the wire in the demo of AP2, and what its extension document lists, at our own agent. */

const read = (file: string) => readFileSync(new URL(`../payments/${file}`, import.meta.url), 'utf8')
type Message = { parts: { data?: { [key: string]: Json } }[]; taskId?: string; contextId?: string }
type Call = { to: string; body: { params: { message: Message } } }
const demo: Call[] = JSON.parse(read('demo-messages.json'))
const listings = ['intent-mandate', 'cart-mandate', 'payment-mandate'].map((name) => ({
  name,
  message: JSON.parse(read(`mandates/v1/listings/${name}.sample`)) as Message,
}))

const test = runtimeTest
  .extend('clients', { scope: 'file' }, async ({ runtime, server, model }) => {
    const business = unique('merchant')
    const skills = [{ id: 'search_catalog', name: 'Search', description: 'Finds products', tags: ['shop'] }]
    await runtime.features.get(agentCardsRef).put(business, {
      ...{ name: 'Coffee shop', description: 'Sells coffee makers', skills, version: '1.0.0' },
      roles: ['merchant'],
    })
    const { token } = await runtime.admin.tokens.create(
      {},
      {
        ...{ business_id: business, label: 'x', roles: ['agent'] },
      },
    )
    const call = (path: string, headers: object, json: object) => {
      model.reset()
      model.script({ planner: [{ text: 'Done.' }] } as never)
      return server.call('POST', `/a2a/agents/${business}${path}`, { token, headers: { ...headers }, json })
    }
    return {
      send: async (message: object) => {
        const params = { configuration: { blocking: true }, message }
        const headers = { 'X-A2A-Extensions': 'https://github.com/google-agentic-commerce/ap2/v1' }
        return (await call('', headers, { jsonrpc: '2.0', id: 1, method: 'message/send', params })).body
      },
      /** By the HTTP binding of A2A 1.0. */
      sendV1: (message: object) =>
        call('/message:send', { 'A2A-Version': '1.0', 'A2A-Extensions': ap2Uris[0] }, { message }),
    }
  })
  .extend('send', ({ clients }) => clients.send)
  .extend('sendV1', ({ clients }) => clients.sendV1)

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

  test.for(listings)(
    'takes the listing $name in an envelope of ours',
    async ({ message }, { send, sendV1 }) => {
      const { parts, taskId, contextId } = message
      const own = { kind: 'message', messageId: randomUUID(), role: 'user', parts }
      expect(
        (await send({ ...own, taskId: taskId ?? 'sample-payment-task', contextId })).error,
      ).toMatchObject({
        code: -32001,
      })
      const answer = await send({ ...own, messageId: randomUUID(), contextId: contextId ?? 'ours' })
      expect(answer).toMatchObject({ result: { kind: 'task', status: { state: 'completed' } } })
      const data = parts.map((part) => ({ data: part.data }))
      const { body } = await sendV1({ messageId: randomUUID(), role: 'ROLE_USER', parts: data })
      expect(body).toMatchObject({ task: { status: { state: 'TASK_STATE_COMPLETED' } } })
    },
  )
})

/** What does not conform: the data of a part, and the member that the error names. */
const wrong: [name: string, data: object, member: string][] = [
  [
    'an intent without a description',
    { 'ap2.mandates.IntentMandate': { intent_expiry: '2030-01-01T00:00:00Z' } },
    'natural_language_description',
  ],
  [
    'an intent that ends at no time',
    {
      risk_data: 'x',
      'ap2.mandates.IntentMandate': { naturalLanguageDescription: 'tea', intent_expiry: 'soon' },
    },
    'intent_expiry',
  ],
  ['an intent that is a text', { 'ap2.mandates.IntentMandate': 'a coffee maker' }, 'IntentMandate'],
  ['a cart without contents', { 'ap2.mandates.CartMandate': { merchant_signature: 'x' } }, 'contents'],
  [
    'a payment without a response',
    { 'ap2.mandates.PaymentMandate': { payment_mandate_contents: { payment_details_id: 'order_1' } } },
    'payment_mandate_contents.payment_response',
  ],
]
describe('a mandate that does not conform', () => {
  test.for(wrong)(
    'is refused with its member, by both versions of A2A: %s',
    async ([, data, member], { send, sendV1 }) => {
      const error = { code: -32602, message: expect.stringContaining(member) }
      const own = { messageId: randomUUID(), role: 'user', kind: 'message' }
      const parts = [
        { kind: 'text', text: 'Buy' },
        { kind: 'data', data },
      ]
      expect(await send({ ...own, parts })).toMatchObject({ error })
      const { status, body } = await sendV1({
        messageId: randomUUID(),
        role: 'ROLE_USER',
        parts: [{ text: 'Buy' }, { data }],
      })
      expect([status, body.error]).toMatchObject([400, { message: expect.stringContaining(member) }])
    },
  )
})

test('a mandate in data that a client of 0.3 has wrapped is checked as it is read', async ({ send }) => {
  const wrap = (value: object) => ({
    ...{ messageId: randomUUID(), role: 'user', kind: 'message' },
    parts: [{ kind: 'data', data: { value }, metadata: { data_part_compat: true } }],
  })
  const error = { code: -32602, message: expect.stringContaining('natural_language_description') }
  expect(await send(wrap({ 'ap2.mandates.IntentMandate': {} }))).toMatchObject({ error })
  const list = [{ 'ap2.mandates.IntentMandate': {} }]
  expect(await send(wrap(list))).toMatchObject({ error: { message: expect.stringContaining('in a list') } })
  const own = [{ data: { value: ['a'] }, kind: 'data', metadata: { data_part_compat: true } }]
  expect((await send(wrap(['a']))).result.history[0].parts).toEqual(own)
})

test('null is absent, and the data of a message are in the history of its task as they were sent', async ({
  send,
}) => {
  const intent = {
    ...{
      natural_language_description: 'coffee',
      intent_expiry: '2030-01-01T00:00:00+00:00',
      merchants: null,
      skus: null,
    },
    ...{ required_refundability: true, other: { nested: [1.5, null, 'é'] } },
  }
  const parts = [
    { kind: 'data', data: { 'ap2.mandates.IntentMandate': intent, risk_data: null } },
    { kind: 'text', text: 'Find coffee' },
    { kind: 'data', data: { shopping_agent_id: 'x' } },
  ]
  const message = { messageId: randomUUID(), role: 'user', kind: 'message', parts }
  const { result } = await send(message)
  expect(result).toMatchObject({ status: { state: 'completed' } })
  expect(JSON.stringify(result.history[0].parts)).toBe(JSON.stringify(parts))
  // a message without a text has none in its history either
  const bare = { ...message, messageId: randomUUID(), parts: parts.slice(0, 1) }
  expect((await send(bare)).result.history[0].parts).toEqual(parts.slice(0, 1))
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
