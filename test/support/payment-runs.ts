import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { createPaymentAgents } from '../../src/features/a2a/client/payment-agents.ts'
import { signNextCard } from '../../src/features/a2a/server/card-signatures.ts'
import type { ConsentRequest } from '../../src/features/payments/consent/content.ts'
import { startPayments } from '../../src/features/payments/executor/start-payments.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { openEgress } from '../../src/infra/egress/egress.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { Hints } from '../../src/infra/queue/hints.ts'
import { createScrubber } from '../../src/infra/secrets/scrubber.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import type { RunView } from '../../src/state/run-view.ts'
import { createAuthenticator } from './authenticator.ts'
import { type Backend, unique } from './backend.ts'
import { cardSecrets, startCardProvider } from './card-provider.ts'
import { trustParty } from './consents.ts'
import { countStatements } from './counted-database.ts'
import type { FakeModel, FakeReply } from './fake-model/fake-model.ts'
import type { TestServer } from './http.ts'
import { closing, runtimeTest } from './integration-test.ts'
import { parties } from './mandate-parties.ts'
import { asProxy, enrol, newEnrolment, readPage, site } from './passkeys.ts'
import { openExecutorDatabase } from './payments.ts'
import { until } from './runs.ts'
import { calling } from './script.ts'
import { deadline, type TestRuntime } from './test-runtime.ts'

const toolFolders = [fileURLToPath(new URL('gate-tools', import.meta.url))]

/** The action of the first call of a run: load-session, user-context and the planner come before it. */
export const offerAction = 4

/** The signed text of an offer. */
export const offerText = (offer: ConsentRequest): string =>
  offer.version === '0.1' ? offer.cart : offer.checkout

/** Starts the executor of payments as `mason payments` does, in this process. */
const startTestExecutor = (backend: Backend, database: Database, clock: Clock, hints: Hints | null) =>
  startPayments(
    { ...backend.config, publicUrl: site.origin, paymentKey: randomBytes(32).toString('base64') },
    {
      database,
      egress: openEgress(),
      queues: null,
      hints,
      clock,
      log: silentLog,
      scrubber: createScrubber(),
      agents: createPaymentAgents,
      signNextCard,
    },
  )

type Parts = { runtime: TestRuntime; server: TestServer; model: FakeModel }

/** What a proxy and a person do about payments, over HTTP. */
export const createBuyer = async ({ runtime, server, model }: Parts) => {
  const api = runtime.of('default')
  const user = unique('ann')
  const authenticator = createAuthenticator()
  expect((await enrol(server, await newEnrolment(server, user), authenticator)).status).toBe(204)
  /** The run once `fact` holds of it, or once it has ended. */
  const untilRun = (id: string, what: string, fact: (run: RunView) => unknown): Promise<RunView> =>
    until(
      `run ${id} ${what}`,
      async () => {
        const run = await api.run(id)
        return run && (fact(run) || run.ended_at) ? run : null
      },
      60_000,
    )
  const answerConsent = async (paymentId: string, answer: 'approve' | 'refuse') => {
    const link = await asProxy(server, 'POST', `/v1/payments/${paymentId}/consent`)
    expect(link.status).toBe(201)
    const path = link.body.url.slice(site.origin.length)
    const { page, text } = await readPage(server, path)
    const { challenge } = page.options
    const json =
      answer === 'refuse' ? { refuse: true } : { approve: authenticator.get({ ...site, challenge }) }
    return { text, reply: await server.call('POST', path, { json }) }
  }
  return {
    user,
    /** Submits a run whose planner gets this offer, makes these calls in turn, and finishes. */
    async begin(offer: string, ...rounds: FakeReply[]): Promise<string> {
      model.reset()
      const replies = [calling(['gate_offer', { text: offer }]), ...rounds, { text: 'Done.' }]
      model.script({ planner: replies } as never)
      const { run } = await api.submit({ prompt: 'Buy it', user_id: user, session_id: unique('s') })
      return run.id
    },
    /** The same for one call that pays the cart of the offer. */
    buy(offer: string, args: object = {}): Promise<string> {
      return this.begin(offer, calling(['create_payment_mandate', { cart_action: offerAction, ...args }]))
    },
    untilConsent: (id: string) => untilRun(id, 'waits for consent', (run) => run.consent_request),
    untilQuestion: (id: string, format: string) =>
      untilRun(id, `asks for a ${format}`, (run) => run.input_request?.schema.format === format),
    answerConsent,
    async answer({ id, input_request }: RunView, answer: string) {
      const json = { request_id: input_request?.id, answer }
      expect((await asProxy(server, 'POST', `/v1/runs/${id}/input`, json)).status).toBeLessThan(300)
    },
    /** Approves what the run asks for and gives a payment token. */
    async approve(id: string, token = 'tok_visa'): Promise<string> {
      const { consent_request } = await this.untilConsent(id)
      const paymentId = consent_request?.payment_id ?? ''
      expect((await answerConsent(paymentId, 'approve')).reply.status).toBe(204)
      const asked = await this.untilQuestion(id, 'payment-token')
      expect(asked.input_request?.question).toBe('Which card should be charged?')
      await this.answer(asked, token)
      return paymentId
    },
    end: (id: string): Promise<RunView> => api.wait(id, deadline(60_000)),
    /** The actions of a run by a tool, in order. */
    async actionsOf(id: string, ...tools: string[]) {
      const actions = (await runtime.stateOf(id)).action_history[0] ?? []
      return actions.filter(({ node }) => tools.includes(node))
    },
    trail: async (paymentId: string) => (await asProxy(server, 'GET', `/v1/payments/${paymentId}`)).body,
  }
}

/** A test with runs that pay: a worker, an executor, a card provider with its own books, a merchant and a user with a passkey. */
export const paymentRunTest = runtimeTest
  .extend('executorClock', { scope: 'file' }, (): Clock => systemClock)
  .extend('heard', { scope: 'file' }, (): { hints: Hints | null } => ({ hints: null }))
  .extend('counting', { scope: 'file' }, () => countStatements([]))
  .extend('runtimeOptions', { scope: 'file' }, ({ heard, counting }) => ({
    ...{ toolFolders, config: { publicUrl: site.origin } },
    wrap: {
      database: counting.wrap,
      hints: (hints: Hints) => {
        heard.hints = hints
        return hints
      },
    },
  }))
  .extend('provider', { scope: 'file' }, closing(startCardProvider))
  .extend(
    'paid',
    { scope: 'file' },
    async ({ backend, elsewhere, server, provider, executorClock, heard }, { onCleanup }) => {
      const database = openExecutorDatabase(backend, elsewhere)
      const executor = await startTestExecutor(backend, database, executorClock, heard.hints)
      onCleanup(async () => {
        await executor.stop()
        await database.close()
      })
      const json = {
        ...{ name: unique('cards'), base_url: provider.url, allow_private: true, test: true, ...cardSecrets },
      }
      const { status, body } = await asProxy(server, 'POST', '/admin/v1/providers', json)
      expect([status, body]).toMatchObject([201, {}])
      await trustParty(server, parties.merchant, 'merchant')
      const keys = (await server.call('GET', '/.well-known/ap2-jwks.json')).body.keys
      for (const jwk of keys) await trustParty(server, { jwk }, 'trusted-surface', site.origin)
      return { executor: database, providerName: json.name }
    },
  )
  .extend('buyer', async ({ runtime, server, model, paid }) => {
    expect(paid.providerName).toBeTruthy()
    return createBuyer({ runtime, server, model })
  })
