// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { askConsent } from '../../../../src/features/payments/consent/consents.ts'
import { createOpenMandates } from '../../../../src/features/payments/mandates/v2/open-mandates.ts'
import { unique } from '../../../support/backend.ts'
import { newCart, newCheckout, trustParty } from '../../../support/consents.ts'
import { createParty, shop } from '../../../support/mandate-parties.ts'
import { asProxy, site } from '../../../support/passkeys.ts'
import { offerText, paymentRunTest } from '../../../support/payment-runs.ts'
import { codeOf } from '../../../support/runs.ts'
import { calling } from '../../../support/script.ts'

const shoe = { any_of: [{ id: 'shoe', title: 'Shoe' }], quantity: 1 }
/** What a model proposes. */
const terms = (changes: object = {}) => ({
  ...{ merchants: [shop], items: [shoe], currency: 'USD', max_amount: '199.00' },
  until: new Date(Date.now() + 86_400_000).toISOString(),
  ...changes,
})
const reusable = { budget: '1000', recurrence: { frequency: 'ON_DEMAND' } }
/** A checkout of one shoe that the merchant signed, with its total. */
const shoeOffer = async (amount = 19_900, changes: object = {}) =>
  offerText(await newCheckout({ checkout: { totals: [{ type: 'total', amount }], ...changes } }))

const steps = ['use_open_mandate', 'pay_by_open_mandate', 'request_user_authorization', 'check_receipt']

const test = paymentRunTest.extend('absent', ({ buyer, server }) => ({
  /** A run that proposes, up to its consent; returns the id of the open mandate and what its page says. */
  async propose(answer: 'approve' | 'refuse', changes: object = {}) {
    const id = await buyer.begin('', calling(['propose_open_mandate', terms(changes)]))
    await buyer.answer(await buyer.untilQuestion(id, 'payment-token'), 'tok_visa')
    const { consent_request } = await buyer.untilConsent(id)
    const mandateId = consent_request?.payment_id ?? ''
    const { text, reply } = await buyer.answerConsent(mandateId, answer)
    expect(reply.status).toBe(204)
    expect(await buyer.end(id)).toMatchObject({ status: 'completed' })
    return { id, mandateId, text }
  },
  list: async () => (await asProxy(server, 'GET', `/v1/users/${buyer.user}/open-mandates`)).body.data,
}))

describe('a person who is not present', () => {
  test('signs limits that are shown in plain words, and a later run pays within them without asking', async ({
    buyer,
    absent,
    provider,
  }) => {
    const { mandateId, text } = await absent.propose('approve', reusable)
    expect(mandateId).toMatch(/^mnd_/)
    const shown = [
      'Let your agent buy later?',
      shop.name,
      `Who is paid: ${shop.website}`,
      'Shoe (shoe)',
      '199.00 USD',
      '1000.00 USD',
      'at any time',
    ]
    for (const words of shown) expect(text).toContain(words)

    const before = (await provider.listPayments()).length
    const later = await buyer.begin(await shoeOffer(), calling(['use_open_mandate', {}]))
    expect(await buyer.end(later)).toMatchObject({ status: 'completed', consent_request: null })
    const own = await buyer.actionsOf(later, ...steps)
    expect(own.map(({ node }) => node)).toEqual(['use_open_mandate', 'pay_by_open_mandate', 'check_receipt'])
    expect(own.at(-1)?.result).toMatchObject({ status: 'succeeded', receipt: 'verified' })
    expect(JSON.stringify(own)).not.toMatch(/tok_visa|eyJ/)
    expect((await provider.listPayments()).length).toBe(before + 1)
    expect(await absent.list()).toMatchObject([
      { id: mandateId, status: 'active', payments: 1, paid_minor: 19_900 },
    ])
  })

  test('is brought back by the run of a schedule for what the limits do not allow, and pays it once approved', async ({
    buyer,
    absent,
    model,
    server,
    provider,
  }) => {
    await absent.propose('approve', reusable)
    model.reset()
    const offer = await shoeOffer(25_000)
    const replies = [
      calling(['gate_offer', { text: offer }]),
      calling(['use_open_mandate', {}]),
      { text: 'Done.' },
    ]
    model.script({ planner: replies } as never)
    const request = { prompt: 'Buy the shoe', user_id: buyer.user }
    const json = { name: unique('shoes'), cron: '0 8 1 1 *', request }
    const schedule = await asProxy(server, 'POST', '/admin/v1/schedules', json)
    expect(schedule.status).toBe(201)
    const fired = await asProxy(server, 'POST', `/admin/v1/schedules/${schedule.body.id}/run`)
    const id = fired.body.run_id ?? fired.body.id
    const before = (await provider.listPayments()).length
    const paymentId = await buyer.approve(id)
    expect(paymentId).toMatch(/^pay_/)
    await buyer.end(id)
    const own = await buyer.actionsOf(id, ...steps)
    expect(own.map(({ node }) => node)).toEqual(steps)
    expect(own[1]?.result.text).toMatch(/250.00 USD is more than 199.00 USD/)
    expect(own.at(-1)?.result).toMatchObject({ payment_id: paymentId, status: 'succeeded' })
    expect((await provider.listPayments()).length).toBe(before + 1)
  })

  test('who refuses, revokes or is forgotten lets no run pay', async ({
    buyer,
    absent,
    server,
    provider,
  }) => {
    const before = (await provider.listPayments()).length
    await absent.propose('refuse')
    const { mandateId } = await absent.propose('approve')
    expect(await absent.list()).toMatchObject([{ status: 'active' }, { status: 'refused' }])
    const revoked = await asProxy(server, 'POST', `/v1/open-mandates/${mandateId}/revoke`)
    expect([revoked.status, revoked.body.status]).toEqual([200, 'revoked'])
    const { mandateId: second } = await absent.propose('approve')
    expect((await asProxy(server, 'DELETE', `/admin/v1/users/${buyer.user}`)).status).toBe(204)
    expect(await absent.list()).toEqual([])
    for (const mandate_id of [mandateId, second]) {
      const id = await buyer.begin(await shoeOffer(), calling(['use_open_mandate', { mandate_id }]))
      await buyer.end(id)
      expect(await buyer.actionsOf(id, 'pay_by_open_mandate')).toEqual([])
    }
    expect((await provider.listPayments()).length).toBe(before)
  })

  test('has mandates of their own: no run of another user sees or uses them', async ({
    buyer,
    absent,
    model,
    runtime,
  }) => {
    const { mandateId } = await absent.propose('approve')
    model.reset()
    const replies = [
      calling(['gate_offer', { text: await shoeOffer() }]),
      calling(['use_open_mandate', { mandate_id: mandateId }]),
      { text: 'Done.' },
    ]
    model.script({ planner: replies } as never)
    const api = runtime.of('default')
    const { run } = await api.submit({ prompt: 'Buy it', user_id: unique('eve'), session_id: unique('s') })
    await buyer.end(run.id)
    expect(await buyer.actionsOf(run.id, 'pay_by_open_mandate')).toEqual([])
  })

  test('is not asked for limits that no one could keep', async ({ buyer, server }) => {
    const past = new Date(Date.now() - 1000).toISOString()
    const other = 'https://other-merchant.example'
    await trustParty(server, createParty('merchant-other'), 'merchant', other)
    const bad: [object, RegExp][] = [
      [{ merchants: [{ ...shop, id: other }] }, /two issuers, https:\/\/other-merchant/],
      [{ merchants: [{ id: 'evil', name: 'Evil', website: 'https://evil.example' }] }, /no trusted key/],
      [{ recurrence: { frequency: 'MONTHLY' } }, /budget is missing/],
      [{ currency: 'XXX' }, /currency/],
      [{ max_amount: '1.999' }, /max_amount has 3 decimals/],
      [{ until: past }, /not within a year/],
      [{ provider: unique('missing') }, /by whom to pay/],
    ]
    for (const [changes, problem] of bad) {
      const id = await buyer.begin('', calling(['propose_open_mandate', terms(changes)]))
      expect(await buyer.end(id)).toMatchObject({ consent_request: null, input_request: null })
      const [action] = await buyer.actionsOf(id, 'propose_open_mandate')
      expect(action?.result).toMatchObject({ is_error: true, text: expect.stringMatching(problem) })
    }
  })

  test('is asked for nothing that the page does not show', async ({ buyer, elsewhere }) => {
    const pair = createOpenMandates({
      merchants: [shop],
      items: [{ any_of: [{ id: 'shoe', title: null }], quantity: 1 }],
      ...{ currency: 'USD', max_minor: 19_900, budget_minor: null, recurrence: null },
      instrument: { id: 'card', type: 'card' },
      expires_at: Math.floor(Date.now() / 1000) + 3600,
    })
    const ask = (changes: Partial<typeof pair>) =>
      codeOf(
        elsewhere.asBusiness('default', (sql) =>
          askConsent(
            sql,
            { version: '0.2-open', ...pair, ...changes },
            {
              ...{ tenant: 'default', user_id: buyer.user, run_id: unique('run'), payment_id: unique('mnd') },
              ...{ audience: site.origin, lifetimeMs: 600_000 },
            },
          ),
        ),
      )
    for (const member of ['"risk_data":{"x":1},', '"payee":{"id":"evil","name":"Evil"},', '"vct":"x",'])
      expect(await ask({ payment: pair.payment.replace('{', `{${member}`) })).toBe('invalid_request')
    expect(
      await ask({ checkout: pair.checkout.replace('"constraints":[', '"constraints":[{"type":"new"},') }),
    ).toBe('invalid_request')
    expect(await ask({ checkout: ` ${pair.checkout}` })).toBe('invalid_request')
  })

  test('pays by no argument of a model: a call with money is refused, and a cart of AP2 0.1 has no open mandate', async ({
    buyer,
    absent,
    provider,
  }) => {
    await absent.propose('approve')
    const before = (await provider.listPayments()).length
    for (const args of [
      { amount: 1 },
      { payee: 'evil' },
      { currency: 'JPY' },
      { provider: 'x' },
      { max_amount: '9' },
    ]) {
      const id = await buyer.begin(await shoeOffer(), calling(['use_open_mandate', args]))
      await buyer.end(id)
      expect(await buyer.actionsOf(id, 'pay_by_open_mandate')).toEqual([])
    }
    const id = await buyer.begin(offerText(await newCart()), calling(['use_open_mandate', {}]))
    await buyer.end(id)
    const [action] = await buyer.actionsOf(id, 'use_open_mandate')
    expect(action?.result).toMatchObject({ is_error: true, text: expect.stringMatching(/cart of AP2 0.1/) })
    expect((await provider.listPayments()).length).toBe(before)
  })
})
