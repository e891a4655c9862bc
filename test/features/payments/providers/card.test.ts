import { randomUUID } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openProvider } from '../../../../src/features/payments/providers/card.ts'
import type {
  PaymentProvider,
  ProviderOperation,
} from '../../../../src/features/payments/providers/provider.ts'
import { openEgress } from '../../../../src/infra/egress/egress.ts'
import { type CardProvider, cardSecrets, startCardProvider } from '../../../support/card-provider.ts'

const amount = { currency: 'USD', minor: 60349 }
const signal = new AbortController().signal
const holdsLease = (): void => {}
const egress = openEgress()
let server: CardProvider
let provider: PaymentProvider

beforeAll(async () => {
  server = await startCardProvider({ late_ms: 50 })
  provider = openProvider(server.toSettings(), cardSecrets, egress)
})
afterAll(async () => {
  await egress[Symbol.asyncDispose]()
  await server.close()
})

const toOperation = (change: Partial<ProviderOperation> = {}): ProviderOperation => ({
  ...{ kind: 'authorize', payment_id: `pay_${randomUUID()}`, amount, payee: { id: 'shop', name: 'Shop' } },
  ...{ provider_ref: null, credential: 'tok_visa', capture: true, ...change },
})
const send = (operation: ProviderOperation, key: string = randomUUID(), by = provider) =>
  by.send(by.toRequest(operation), key, holdsLease, signal)
const answer = (ref: string, text: string, key: string = randomUUID()) =>
  provider.answerChallenge(ref, text, key, holdsLease, signal)
const paymentsOf = async ({ payment_id }: ProviderOperation) =>
  (await server.listPayments()).filter((payment) => payment.payment_id === payment_id)
const refOf = ({ provider_ref }: { provider_ref: string | null }): string => provider_ref ?? ''

describe('the card provider', () => {
  test('takes a payment once under its key, and looks it up', async () => {
    const operation = toOperation()
    const first = await send(operation, 'once/and again')
    expect(first).toEqual({
      ...{ status: 'succeeded', amount, provider_ref: expect.any(String), network_ref: expect.any(String) },
    })
    expect(await send(operation, 'once/and again')).toEqual(first)
    expect(await provider.lookup('once/and again', signal)).toEqual(first)
    expect(await provider.lookup('never', signal)).toBeNull()
    expect(await paymentsOf(operation)).toMatchObject([{ amount: 60349, captured: 60349 }])
  })

  test('writes the same bytes for the same operation', () => {
    const operation = toOperation({ payment_id: 'pay_1' })
    expect(provider.toRequest(operation)).toBe(
      '{"kind":"authorize","payment":null,"payment_id":"pay_1","amount":60349,"currency":"USD","payee":{"id":"shop","name":"Shop"},"credential":"tok_visa","capture":true}',
    )
    expect(provider.toRequest({ ...operation })).toBe(provider.toRequest(operation))
  })

  test('captures, refunds in parts and voids, and declines what is more or too late', async () => {
    const operation = toOperation({ capture: false })
    const authorized = await send(operation)
    expect(authorized).toMatchObject({ status: 'authorized', amount })
    const next = { ...operation, provider_ref: refOf(authorized as never), credential: null }
    const part = (kind: ProviderOperation['kind'], minor: number) =>
      send({ ...next, kind, amount: { ...amount, minor } })
    expect(await part('capture', 60350)).toMatchObject({
      status: 'declined',
      reason: /more than what is left/,
    })
    expect(await part('capture', 50000)).toMatchObject({ status: 'succeeded', amount: { minor: 50000 } })
    expect(await part('void', 60349)).toMatchObject({ status: 'declined', reason: /no longer in a state/ })
    expect(await part('refund', 20000)).toMatchObject({ status: 'refunded', amount: { minor: 20000 } })
    expect(await part('refund', 30001)).toMatchObject({ status: 'declined' })
    expect(await paymentsOf(operation)).toMatchObject([{ captured: 50000, refunded: 20000 }])
    const other = toOperation({ capture: false })
    const provider_ref = refOf((await send(other)) as never)
    expect(await send({ ...other, kind: 'void', provider_ref, credential: null })).toMatchObject({
      status: 'voided',
    })
  })

  test('declines a card in plain words, under its key for good', async () => {
    const operation = toOperation({ credential: 'tok_insufficient' })
    const declined = {
      status: 'declined',
      reason: 'The card has not enough money for this payment. Use another card.',
    }
    expect(await send(operation, 'poor')).toMatchObject(declined)
    expect(await send(operation, 'poor')).toMatchObject(declined)
    expect(await provider.lookup('poor', signal)).toMatchObject(declined)
    expect(await send(toOperation({ credential: 'other' }))).toMatchObject({
      reason: /does not know this card/,
    })
  })

  test('asks for a code three times at most, and takes the payment with the right one', async () => {
    const operation = toOperation({ credential: 'tok_challenge' })
    const asked = await send(operation, 'asks')
    expect(asked).toMatchObject({ status: 'challenge', challenge: { type: 'otp', text: /code/ } })
    const ref = refOf(asked as never)
    expect(await answer(ref, '000000')).toMatchObject({ status: 'challenge' })
    const done = { status: 'succeeded', provider_ref: ref, amount }
    expect(await answer(ref, '123456', 'right')).toMatchObject(done)
    expect(await answer(ref, '123456', 'right')).toMatchObject(done)
    expect(await answer(ref, '123456', 'an answer too many')).toMatchObject(done)
    expect([await provider.lookup('asks', signal), await provider.lookup('right', signal)]).toMatchObject([
      done,
      done,
    ])
    const wrong = toOperation({ credential: 'tok_challenge' })
    const other = refOf((await send(wrong, 'wrong')) as never)
    for (const status of ['challenge', 'challenge', 'declined', 'declined'])
      expect(await answer(other, '1')).toMatchObject({ status })
    expect(await provider.lookup('wrong', signal)).toMatchObject({
      status: 'declined',
      reason: /wrong too often/,
    })
    expect(await paymentsOf(wrong)).toMatchObject([{ captured: 0, status: 'declined' }])
  })

  test('says that a payment is pending until it is settled', async () => {
    expect(await send(toOperation({ credential: 'tok_pending' }), 'slow')).toMatchObject({
      status: 'pending',
    })
    await expect.poll(() => provider.lookup('slow', signal)).toMatchObject({ status: 'succeeded', amount })
  })

  test('sends nothing when the lease is gone at the first byte', async () => {
    const operation = toOperation()
    const lost = new Error('the lease is gone')
    const failing = (): never => {
      throw lost
    }
    await expect(provider.send(provider.toRequest(operation), 'lost', failing, signal)).rejects.toBe(lost)
    await expect(provider.answerChallenge('ch_1', '1', 'lost', failing, signal)).rejects.toBe(lost)
    expect([await provider.lookup('lost', signal), await paymentsOf(operation)]).toEqual([null, []])
  })

  for (const failure of ['fail', 'cut', 'hang'].flatMap((one) => [`${one}_before`, `${one}_after`] as const))
    test(`takes one payment where a request does ${failure}: it throws, and the same key settles it`, async () => {
      await server.change({ failures: [failure] })
      const operation = toOperation()
      const impatient = openProvider(server.toSettings({ timeout_ms: 200 }), cardSecrets, egress)
      await expect(
        send(operation, failure, failure.startsWith('hang') ? impatient : provider),
      ).rejects.toThrow()
      const found = await provider.lookup(failure, signal)
      expect(found).toEqual(
        failure.endsWith('after') ? expect.objectContaining({ status: 'succeeded' }) : null,
      )
      expect(await send(operation, failure)).toMatchObject({ status: 'succeeded' })
      expect(await paymentsOf(operation)).toMatchObject([{ captured: 60349 }])
    })

  test('takes one payment where it acts after the connection is gone', async () => {
    await server.change({ failures: ['late'] })
    const operation = toOperation()
    await expect(send(operation, 'late')).rejects.toThrow()
    await expect.poll(() => provider.lookup('late', signal)).toMatchObject({ status: 'succeeded' })
    expect(await send(operation, 'late')).toMatchObject({ status: 'succeeded' })
    expect(await paymentsOf(operation)).toHaveLength(1)
  })

  test('does not take an answer with another amount for a success, nor a conflict for a refusal', async () => {
    const operation = toOperation()
    await server.change({ failures: ['nonsense', 'conflict'] })
    await expect(send(operation, 'nonsense')).rejects.toThrow('the amount is 60350 USD, not 60349 USD')
    await expect(send(operation, 'nonsense')).rejects.toThrow('answered 409')
    await expect(send({ ...operation, amount: { ...amount, minor: 1 } }, 'nonsense')).rejects.toThrow(
      'answered 409',
    )
    expect(await send(operation, 'nonsense')).toMatchObject({ status: 'succeeded', amount })
  })

  test('forgets a key after its window and charges again, while the look-up still knows it', async () => {
    const operation = toOperation()
    await send(operation, 'window')
    await server.change({ clock_ms: 25 * 3_600_000 })
    expect(await provider.lookup('window', signal)).toMatchObject({ status: 'succeeded' })
    expect(await send(operation, 'window')).toMatchObject({ status: 'succeeded' })
    await server.change({ clock_ms: 0 })
    expect(await paymentsOf(operation)).toHaveLength(2)
  })

  test('has everything that it confirmed after SIGKILL, and drops a line that was cut off', async () => {
    const operation = toOperation()
    const before = await send(operation, 'killed')
    await server.end()
    appendFileSync(server.books, '[{"id":"ch_cut')
    await server.restart()
    expect(await provider.lookup('killed', signal)).toEqual(before)
    expect(await paymentsOf(operation)).toHaveLength(1)
    expect(readFileSync(server.books, 'utf8')).not.toContain('ch_cut')
  })

  test('answers test routes and payments to their own tokens alone', async () => {
    const thief = openProvider(server.toSettings(), { ...cardSecrets, api_key: 'sk_wrong' }, egress)
    await expect(send(toOperation(), 'thief', thief)).rejects.toThrow('answered 401')
    const headers = { authorization: `Bearer ${cardSecrets.api_key}` }
    expect((await fetch(`${server.url}/test/books`, { headers })).status).toBe(401)
  })
})
