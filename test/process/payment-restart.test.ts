// asserts: invariants

import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openServers } from '../../chaos/failures/servers.ts'
import { orderPayment, type PaymentRequest } from '../../src/features/payments/ledger/orders.ts'
import { queryOne } from '../../src/infra/database/database.ts'
import { loginRoles } from '../../src/infra/database/login-roles.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { unique } from '../support/backend.ts'
import { cardSecrets, startCardProvider } from '../support/card-provider.ts'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { newCart, trustParty } from '../support/consents.ts'
import { startFakeModel } from '../support/fake-model/fake-model.ts'
import { type Call, callUrl, type TestServer } from '../support/http.ts'
import { adminToken } from '../support/integration-test.ts'
import { createParty, parties } from '../support/mandate-parties.ts'
import { asProxy, enrol, newEnrolment, readPage, site } from '../support/passkeys.ts'
import { offerAction, offerText } from '../support/payment-runs.ts'
import { serversMissing } from '../support/processes.ts'
import { until } from '../support/runs.ts'
import { calling, say } from '../support/script.ts'
import { databaseSettings, loginsOf, paymentUrlOf } from '../support/served-logins.ts'
import { onServers } from './servers.ts'

/** A tool of a product: what a merchant answers. */
const offerTool = `
  import { z } from '${join(import.meta.dirname, '../../node_modules/zod/index.js')}'
  export default {
    kind: 'tool', name: 'gate_offer', description: 'Gets an offer', kinds: ['call'], pure: true, reads: [], writes: [],
    input: z.strictObject({ text: z.string() }),
    run: (_state, { call, checkpoint }) => checkpoint({ summary: 'Got an offer', result: { text: call.input.text } }),
  }`

test.skipIf(serversMissing !== null)(
  onServers(
    'runs that wait for consent and for a token survive a restart of everything, and each pays once; a forged cart pays never',
  ),
  async () => {
    const servers = await openServers()
    onTestFinished(() => servers[Symbol.asyncDispose]())
    const model = await startFakeModel()
    onTestFinished(() => model.close())
    const provider = await startCardProvider()
    onTestFinished(() => provider.close())
    const tools = join(servers.folder, 'tools')
    await mkdir(tools)
    await writeFile(join(tools, 'gate-offer.tool.mjs'), offerTool)
    const { postgres, redis } = servers
    const common = { REDIS_URL: redis.url, MASON_QUEUE_PREFIX: unique('q'), MASON_PUBLIC_URL: site.origin }
    const env = {
      ...common,
      ...databaseSettings(postgres.url),
      ...{
        MASON_MASTER_KEY: randomBytes(32).toString('base64'),
        MASON_ADMIN_TOKEN: adminToken,
        MASON_TOOLS: tools,
      },
      ...{ OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'fake' },
    }
    const payments = {
      ...common,
      MASON_PAYMENT_DATABASE_URL: paymentUrlOf(postgres.url),
      MASON_PAYMENT_KEY: randomBytes(32).toString('base64'),
    }
    let running: Running[] = []
    const startAll = async (): Promise<TestServer> => {
      const api = startCli(['serve', '--role', 'api', '--port', '0'], { env, cwd: servers.folder })
      const others = [
        startCli(['worker'], { env, cwd: servers.folder }),
        startCli(['payments'], { env: payments, cwd: servers.folder }),
      ]
      running = [api, ...others]
      const [listens] = await Promise.all([
        api.says(/listens on (http:\S+)/),
        others[0]?.says(/takes \d+ runs at once/),
        others[1]?.says(/carries out orders/),
      ])
      const url = listens[1] ?? ''
      return {
        url,
        call: (method: string, path: string, call?: Call) => callUrl(url + path, method, call),
      } as TestServer
    }
    const killAll = async (): Promise<void> => {
      for (const { kill } of running) kill('SIGKILL')
      await Promise.all(running.map(({ ended }) => ended))
    }
    onTestFinished(killAll)
    const restartAll = async (): Promise<TestServer> => {
      await killAll()
      await Promise.all([postgres.crash(), redis.stop('SIGKILL'), provider.restart()])
      await Promise.all([postgres.start(), redis.start()])
      return startAll()
    }
    const untilRun = async (server: TestServer, id: string, field: string) =>
      until(
        `run ${id} has ${field}`,
        async () => {
          const { body } = await asProxy(server, 'GET', `/v1/runs/${id}`)
          expect(body.ended_at === null || field === 'ended_at').toBe(true)
          return body[field] && body
        },
        60_000,
      )

    let server = await startAll()
    const row = { name: 'cards', base_url: provider.url, allow_private: true, test: true, ...cardSecrets }
    const { status, body: added } = await asProxy(server, 'POST', '/admin/v1/providers', row)
    expect(status).toBe(201)
    await trustParty(server, parties.merchant, 'merchant')
    for (const jwk of (await server.call('GET', '/.well-known/ap2-jwks.json')).body.keys)
      await trustParty(server, { jwk }, 'trusted-surface', site.origin)
    const user = unique('ann')
    const authenticator = createAuthenticator()
    expect((await enrol(server, await newEnrolment(server, user), authenticator)).status).toBe(204)
    const pay = ['create_payment_mandate', { cart_action: offerAction }] as const
    /** A run that has asked for consent. */
    const buy = async () => {
      const offer = calling(['gate_offer', { text: offerText(await newCart()) }])
      say(model, { planner: [offer, calling([...pay]), { text: 'Done.' }] })
      const { body } = await asProxy(server, 'POST', '/v1/runs', { prompt: 'Buy it', user_id: user })
      const { consent_request } = await untilRun(server, body.id, 'consent_request')
      return { id: body.id as string, consent_request }
    }
    type Bought = Awaited<ReturnType<typeof buy>>
    /** Approves it; the run asks for a token then. */
    const approve = async ({ id, consent_request }: Bought) => {
      const link = await asProxy(server, 'POST', `/v1/payments/${consent_request.payment_id}/consent`)
      const path = link.body.url.slice(site.origin.length)
      const { page } = await readPage(server, path)
      const json = { approve: authenticator.get({ ...site, challenge: page.options.challenge }) }
      expect((await server.call('POST', path, { json })).status).toBe(204)
      return (await untilRun(server, id, 'input_request')).input_request
    }
    const answer = async ({ id }: Bought, { id: request_id }: { id: string }) => {
      const sent = await asProxy(server, 'POST', `/v1/runs/${id}/input`, { request_id, answer: 'tok_visa' })
      expect(sent.status).toBe(202)
      expect(await untilRun(server, id, 'ended_at')).toMatchObject({ status: 'completed', answer: 'Done.' })
    }

    /** By the login of a worker: orders of what the user approved with carts that no trusted merchant signed. */
    const forge = async ({ id: run_id, consent_request }: Bought) => {
      const url = loginsOf(postgres.url).workerUrl
      const worker = openPostgresDatabase({ url, max: 1, roles: loginRoles.worker })
      onTestFinished(() => worker.close())
      const found = await worker.asBusiness('default', (sql) =>
        queryOne<{ issued: Extract<PaymentRequest, { cart: string }> }>(
          sql,
          'SELECT issued FROM consents WHERE payment_id = $1',
          [consent_request.payment_id],
        ),
      )
      const { issued } = found ?? expect.fail('no mandate was issued')
      const theirs = await newCart('Demo Merchant', { signing: createParty('merchant-1').signing })
      const carts = [
        issued.cart.replaceAll('199', '99'),
        issued.cart.replace(/"merchant_authorization":"[^"]*"/, '"merchant_authorization":"a.b.c"'),
        'cart' in theirs ? theirs.cart : '',
      ]
      for (const [index, cart] of carts.entries()) {
        expect(cart).not.toBe(issued.cart)
        const request = { ...issued, cart, provider_id: added.id }
        const paymentId = await worker.asBusiness('default', (sql) =>
          orderPayment(sql, { tenant: 'default', run_id }, { plan_seq: 99, index }, request),
        )
        const outcome = await until('the executor refused it', async () => {
          const { body } = await asProxy(server, 'GET', `/v1/payments/${paymentId}`)
          return body.payment.outcome
        })
        expect(outcome).toMatchObject({ status: 'declined', code: 'invalid_credential' })
      }
    }

    const approved = await buy()
    const question = await approve(approved)
    const asking = await buy()
    const { id, consent_request } = asking
    server = await restartAll()
    expect((await untilRun(server, id, 'consent_request')).consent_request).toEqual(consent_request)
    await answer(approved, question)
    const last = await approve(asking)
    await forge(asking)
    await answer(asking, last)
    expect(await provider.listPayments()).toHaveLength(2)
    const trail = await asProxy(server, 'GET', `/v1/payments/${consent_request.payment_id}`)
    expect(trail.body.payment).toMatchObject({
      status: 'succeeded',
      amount: { minor: 19_900, currency: 'USD' },
    })
    const cli = (...args: string[]) =>
      runCli(['payments', 'trail', ...args, '--url', server.url, '--token', adminToken], {
        cwd: servers.folder,
      })
    const [text, missing] = await Promise.all([cli(consent_request.payment_id), cli('pay_none')])
    expect([text.code, text.stderr]).toEqual([0, ''])
    for (const shown of [
      /^pay_\S+: succeeded\. Paid 199\.00 USD to /,
      /signed\n.* cart, by key .*\n.* payment, by key /,
      /signature of the merchant over the cart/,
      /authorize of 19900 USD: done, sent 1 times, key op_/,
      /\nreceipt {2}ey[\w-]+\.[\w-]+\.[\w-]+\n$/,
    ])
      expect(text.stdout).toMatch(shown)
    expect(text.stdout).not.toContain('tok_visa')
    expect([missing.code, missing.stdout, missing.stderr]).toEqual([
      1,
      '',
      expect.stringMatching(/there is no payment "pay_/),
    ])
  },
  300_000,
)
