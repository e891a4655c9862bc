import { createPublicKey, generateKeyPairSync, hash, type JsonWebKey, verify } from 'node:crypto'
import { appendMandate, conceal, issueMandate } from '../../src/features/payments/mandates/tokens/issue.ts'
import { createKeyImporter, trustForEveryRole } from '../../src/features/payments/mandates/tokens/keys.ts'
import { verifyPaymentChain } from '../../src/features/payments/mandates/verify/chains.ts'
import type { Case, Variant } from '../case.ts'
import { median } from '../support/statistics.ts'

const rounds = 31
/** The first rounds run code that is not compiled yet. */
const warmUps = 10
const chainsARound = 40
const now = 1_777_342_400
const hop = { audience: 'processor', nonce: 'nonce-1', iat: now }
const facts = { transactionId: 'checkout-1', openCheckoutHash: 'open-checkout' }

const createKey = (kid: string) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    signing: { key: privateKey, kid },
    jwk: { ...publicKey.export({ format: 'jwk' }), kid },
    publicKey,
  }
}
const payee = { id: 'merchant_1', name: 'Demo Merchant', website: 'https://demo-merchant.example' }
const openMandate = (jwk: JsonWebKey) => ({
  vct: 'mandate.payment.open.1',
  constraints: [
    { type: 'payment.amount_range', currency: 'USD', max: 20000, min: 0 },
    {
      type: 'payment.allowed_payees',
      allowed: [conceal(payee), conceal({ id: 'merchant_2', name: 'Another' })],
    },
    { type: 'payment.reference', conditional_transaction_id: 'open-checkout' },
  ],
  cnf: { jwk },
  ...{ iat: now, exp: now + 3600 },
})
const closedMandate = {
  ...{ vct: 'mandate.payment.1', transaction_id: 'checkout-1', payee, iat: now, exp: now + 3600 },
  payment_amount: { amount: 19900, currency: 'USD' },
  payment_instrument: { id: 'card-1', type: 'card', description: 'Card ••••4242' },
}

/** Chains of three hops, each with keys of its own for its agents where `fresh`. */
const openChains = async (fresh: boolean) => {
  const root = createKey('surface-1')
  const createAgents = () => [createKey('agent'), createKey('helper')] as const
  const shared = createAgents()
  const make = async () => {
    const [agent, helper] = fresh ? createAgents() : shared
    const open = await issueMandate(openMandate(agent.jwk), root.signing)
    const second = await appendMandate(open, openMandate(helper.jwk), agent.signing, hop)
    const token = await appendMandate(second, closedMandate, helper.signing, hop)
    return { token, keys: [root, agent, helper] }
  }
  return { root, chains: await Promise.all(Array.from({ length: chainsARound }, make)) }
}
type Chain = Awaited<ReturnType<typeof openChains>>['chains'][number]

/** What cannot be left out: each signature once, and the SHA-256 of each disclosure and of each hop that the next one binds. */
const verifyRaw = ({ token, keys }: Chain, importsKeys: boolean): void => {
  const hops = token.split('~~')
  for (const [i, text] of hops.entries()) {
    const [jwt = '', ...disclosures] = text.split('~')
    const end = jwt.lastIndexOf('.')
    const { publicKey, jwk } = keys[i] as Chain['keys'][number]
    const key = importsKeys && i > 0 ? createPublicKey({ key: jwk, format: 'jwk' }) : publicKey
    const signature = Buffer.from(jwt.slice(end + 1), 'base64url')
    const data = Buffer.from(jwt.slice(0, end))
    if (!verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature))
      throw new Error('wrong signature')
    for (const disclosure of disclosures) hash('sha256', disclosure, 'base64url')
    if (i < hops.length - 1) hash('sha256', `${text}~`, 'base64url')
  }
}

/** The CPU time of both on the same chains, taken in turns so that the machine's load meets both alike. */
const measure =
  (fresh: boolean): Variant =>
  async () => {
    const { root, chains } = await openChains(fresh)
    const spent = { ours: [] as number[], raw: [] as number[] }
    const time = (into: number[], work: () => void) => {
      const before = process.cpuUsage()
      work()
      const { user, system } = process.cpuUsage(before)
      into.push((user + system) / chainsARound)
    }
    let importKey = createKeyImporter()
    for (let round = 0; round < rounds; round += 1) {
      // a fresh chain has keys that were never seen
      if (fresh) importKey = createKeyImporter()
      const known = { importKey, findKeys: trustForEveryRole([root.jwk], importKey), now, ...hop }
      time(spent.ours, () => {
        for (const { token } of chains)
          if (!verifyPaymentChain(token, known, facts).ok) throw new Error('a chain is refused')
      })
      time(spent.raw, () => {
        for (const chain of chains) verifyRaw(chain, fresh)
      })
    }
    const [ours, raw] = [median(spent.ours.slice(warmUps)), median(spent.raw.slice(warmUps))]
    return { 'µs of CPU a chain': ours, 'µs of CPU raw': raw, 'of raw': ours / raw, 'chains/s': 1e6 / ours }
  }

/** The case. */
export default {
  about: 'A chain of three hops is verified, beside its three ES256 signatures and its SHA-256s alone.',
  ours: { 'keys of agents seen before': measure(false), 'new keys of agents': measure(true) },
} satisfies Case
