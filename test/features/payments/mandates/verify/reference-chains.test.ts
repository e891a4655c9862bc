import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { verifyLines } from '../../../../../src/features/payments/ap2/verify.ts'
import {
  createKeyImporter,
  trustForEveryRole,
} from '../../../../../src/features/payments/mandates/tokens/keys.ts'
import { verifyReceipt } from '../../../../../src/features/payments/mandates/verify/receipts.ts'
import type { Verdict } from '../../../../../src/features/payments/mandates/verify/verdict.ts'
import { createParty, editHop } from '../../../../support/mandate-parties.ts'
import reference from '../../reference-chains.json' with { type: 'json' }

type Line = Record<'name' | 'kind' | 'token' | 'audience' | 'nonce', string> & Record<string, unknown>
const { now, keys, receipts } = reference
const chains: Line[] = reference.chains

/** What `mason ap2 verify` prints for a line: `ok`, or the stage and the violations. */
const verify = async (line: Line) => {
  const input = Readable.from([Buffer.from(JSON.stringify({ trust: { keys }, now, ...line }))])
  const { ok, stage, violations }: Verdict<unknown> = (await verifyLines(input, () => Number.NaN).next())
    .value
  return ok ? 'ok' : [stage, ...violations.map((found) => `${found.field} ${found.code}`)]
}
const count = ({ token }: Line) => token.split('~~').length
const last = (line: Line) => `hops[${count(line) - 1}]`
const delegated = chains.filter((line) => count(line) > 1)
const payments = delegated.filter(({ kind }) => kind === 'payment')
/** Another signature of 64 bytes. */
const editSignature = (jwt: string) => `${jwt.slice(0, -10)}AAAA${jwt.slice(-6)}`

describe('a chain of the reference SDK', () => {
  test.for(delegated)('is verified at its date: $name', async (line) => {
    expect(await verify(line)).toBe('ok')
  })

  test.for(delegated)('is refused at another audience, nonce, date or key: $name', async (line) => {
    const at = last(line)
    expect(await verify({ ...line, audience: 'another' })).toEqual(['crypto', `${at}.payload.aud wrong_aud`])
    expect(await verify({ ...line, nonce: 'old' })).toEqual(['crypto', `${at}.payload.nonce wrong_nonce`])
    expect(await verify({ ...line, now: now + 3901 })).toContain('hops[0].exp expired')
    expect(await verify({ ...line, now: now - 301 })).toContain('hops[0].iat issued_in_future')
    const forged = keys.map(({ kid }) => createParty(kid).jwk)
    expect(await verify({ ...line, trust: { keys: forged } })).toContain('hops[0].signature wrong_signature')
  })

  test.for(delegated)('is refused with another signature, or without a disclosure: $name', async (line) => {
    for (let i = 0; i < count(line); i++) {
      const changed = { ...line, token: editHop(line.token, i, editSignature) }
      expect(await verify(changed)).toContain(`hops[${i}].signature wrong_signature`)
    }
    const parts = line.token.split('~')
    for (const [i, part] of parts.entries()) {
      if (part === '' || part.includes('.')) continue
      const token = parts.toSpliced(i, 1).join('~')
      // a hop that is bound by its JWT alone leaves the choice to its holder; the one payee is needed here
      expect([i, await verify({ ...line, token })]).not.toEqual([i, 'ok'])
    }
  })

  test.for(payments)('is refused for another checkout: $name', async (line) => {
    expect(await verify({ ...line, transaction_id: 'x' })).toEqual([
      ...['constraints', `${last(line)}.transaction_id transaction_id_mismatch`],
    ])
    const [, ...violations] = await verify({ ...line, open_checkout_hash: 'x' })
    expect(new Set(violations.map((text) => text.split(' ')[1]))).toEqual(new Set(['reference_mismatch']))
  })

  test('is refused beyond its budget and at another date of execution', async () => {
    const [line] = payments.filter(({ spent }) => spent)
    if (!line) throw new Error('no chain with a budget')
    expect(await verify({ ...line, spent: { amount_minor: 4751, uses: 1 } })).toEqual([
      ...['constraints', 'hops[0].constraints[4].max budget_exceeded'],
    ])
    expect(await verify({ ...line, spent: { amount_minor: 4750, uses: 1 } })).toBe('ok')
  })

  test('for a checkout is refused with another hash', async () => {
    for (const line of delegated.filter(({ kind }) => kind === 'checkout'))
      expect(await verify({ ...line, checkout_hash: 'x' })).toEqual([
        ...['constraints', `${last(line)}.checkout_hash checkout_hash_mismatch`],
      ])
  })
})

test.for(chains.filter((line) => count(line) === 1))(
  'a mandate of a person who is present lacks audience and nonce in the reference samples, and is refused: $name',
  async (line) => {
    expect(await verify(line)).toEqual([
      ...['crypto', 'hops[0].payload.aud missing_aud', 'hops[0].payload.nonce missing_nonce'],
    ])
  },
)

test.for(receipts)(
  'a receipt of the reference SDK is verified: $kind $status',
  ({ token, kind, of, status }) => {
    const known = { findKeys: trustForEveryRole(keys, createKeyImporter()), now }
    const check = (text: string, name: string) =>
      verifyReceipt(text, kind as 'payment', chains.find((chain) => chain.name === name)?.token ?? '', known)
    expect(check(token, of)).toMatchObject({ ok: true, value: { status } })
    const codes = (verdict: ReturnType<typeof check>) => verdict.violations.map(({ code }) => code)
    for (const { name } of chains.filter((chain) => chain.name !== of))
      expect(codes(check(token, name))).toEqual(['wrong_reference'])
    expect(codes(check(editSignature(token), of))).toEqual(['wrong_signature'])
  },
)
