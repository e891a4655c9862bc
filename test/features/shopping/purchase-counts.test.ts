// backends: either

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type AgentName, agentNames, startAgents } from '../../../examples/buy-demo/agents.ts'
import { introduceAgents } from '../../../examples/buy-demo/introductions.ts'
import { unique } from '../../support/backend.ts'
import { countStatements } from '../../support/counted-database.ts'
import { adminToken } from '../../support/integration-test.ts'
import { site } from '../../support/passkeys.ts'
import { paymentRunTest } from '../../support/payment-runs.ts'
import { calling } from '../../support/script.ts'
import { deadline } from '../../support/test-runtime.ts'

/** What a purchase over A2A costs API and worker, and the agents: the executor has a database login of its own, and is not counted. */

/** What each of these statements is called here, by a text that it alone has. What else is asked is not counted. */
const names = [
  ['an action', 'INSERT INTO actions'],
  ['a visit after the first', 'SELECT seq, turn, body, patch, attempt_id'],
  ['a park', 'UPDATE runs SET stalls = 0'],
  ['a wait', 'INSERT INTO waits'],
  ['an order', 'INSERT INTO payment_orders'],
  ['a message of the run', 'INSERT INTO effects'],
  ['an answer of the user', 'SELECT answer, sealed'],
  ['an agent', 'FROM remote_agents'],
  ['the keys of an offer', 'AS q (nth int'],
] as const

const test = paymentRunTest
  .override('counting', () => countStatements(names))
  .extend('agents', { scope: 'file' }, async ({ server, paid }, { onCleanup }) => {
    expect(paid.providerName).toBeTruthy()
    const folder = await mkdtemp(join(tmpdir(), 'mason-purchase-counts-'))
    const { keys } = (await server.call('GET', '/.well-known/ap2-jwks.json')).body
    const trust = keys.map(({ kid, kty, crv, x, y }: Record<string, string>) => ({
      ...{ issuer: site.origin, kid, roles: ['trusted-surface'], jwk: { kty, crv, x, y } },
    }))
    const change = { merchant: { unsigned_offers: true } }
    const agents = await startAgents({ folder, audience: site.origin, trust, flags: null, change })
    onCleanup(async () => {
      await agents.close()
      await rm(folder, { recursive: true })
    })
    const call = async <Body>(method: string, path: string, json?: object): Promise<Body> => {
      const { status, body, text } = await server.call(method, path, {
        token: adminToken,
        ...(json && { json }),
      })
      expect(status, text).toBe(201)
      return body
    }
    await introduceAgents(
      {
        call,
        trust: (issuer, { kid, jwk }, role) =>
          call('POST', '/admin/v1/trust', { issuer, kid, roles: [role], jwk }),
      },
      agents,
    )
    return agents
  })
  /** The requests that each agent has got since the last call. */
  .extend('requests', async ({ agents }, { onCleanup }) => {
    const byPort = new Map(agentNames.map((name) => [new URL(agents[name].url).port, name]))
    let counts: Partial<Record<AgentName, number>> = {}
    const count = (message: unknown): void => {
      const { port } = (message as { server: Server }).server.address() as AddressInfo
      const name = byPort.get(String(port))
      if (name) counts[name] = (counts[name] ?? 0) + 1
    }
    subscribe('http.server.request.start', count)
    onCleanup(() => void unsubscribe('http.server.request.start', count))
    return () => {
      const taken = counts
      counts = {}
      return taken
    }
  })

const email = 'bugsbunny@gmail.com'
const rounds = [
  calling(['create_intent_mandate', { description: 'espresso coffee maker', requires_refundability: true }]),
  calling(['find_products', {}]),
  calling(['choose_cart', { cart_ids: ['cart_1', 'cart_2', 'cart_3'], why: 'It makes the best espresso.' }]),
  calling(['get_shipping_address', { email }]),
  calling(['update_cart', {}]),
  calling(['get_payment_methods', {}]),
  calling(['get_payment_credential_token', {}]),
  calling(['create_payment_mandate', {}]),
  { text: 'Done.' },
]

// embedded, what the executor asks is counted with them
test.runIf(process.env.MASON_TEST_BACKEND === 'served')(
  'a purchase over A2A costs so many statements and requests',
  async ({ buyer, counting, model, requests, runtime }) => {
    model.reset()
    model.script({ planner: rounds } as never)
    const api = runtime.of('default')
    counting.take()
    requests()
    const request = { prompt: `Buy an espresso coffee maker, I am ${email}`, user_id: buyer.user }
    const { run } = await api.submit({ ...request, session_id: unique('s') })
    for (let questions = 0; questions < 3; questions++) {
      const view = await api.wait(run.id, deadline())
      await buyer.answer(view, view.input_request?.options?.[0] ?? 'Yes')
    }
    const { consent_request } = await buyer.untilConsent(run.id)
    await buyer.answerConsent(consent_request?.payment_id ?? '', 'approve')
    await buyer.answer(await buyer.untilQuestion(run.id, 'one-time-code'), '123')
    expect(await buyer.end(run.id)).toMatchObject({ status: 'completed' })
    const { statements } = counting.take()
    expect(Object.fromEntries(names.map(([name]) => [name, statements[name] ?? 0]))).toEqual({
      'an action': 33,
      // three questions, the consent, the order, the code and its order
      'a park': 7,
      'a visit after the first': 7,
      'a wait': 6,
      'an order': 2,
      'a message of the run': 6,
      // the claims bring them
      'an answer of the user': 0,
      'an agent': 7,
      'the keys of an offer': 2,
    })
    // processor and merchant read the card of whom they call before each message
    expect(requests()).toEqual({ merchant: 4, wallet: 8, processor: 4 })
    // the third is the executor's, once for all that it sends
    const { events } = await buyer.trail(consent_request?.payment_id ?? '')
    expect(JSON.stringify(events).match(/signature of the merchant over the cart/g)).toHaveLength(1)
  },
)
