import { LRUCache } from 'lru-cache'
import { identify, type Verification } from '../mandates/tokens/chain.ts'
import { parseJws, verifyJws } from '../mandates/tokens/jws.ts'
import { unwrapToken } from '../mandates/tokens/key-binding.ts'
import { createKeyImporter, type PublicKey } from '../mandates/tokens/keys.ts'
import { isMerchantPlaceholder, toDemoIdentity } from '../mandates/verify/placeholders.ts'
import type { Trust } from './trust.ts'

/** A merchant's trusted key and its issuer, who is paid. */
export type MerchantKey = { key: PublicKey; issuer: string }
type Wanted = Parameters<Verification['findKeys']>[0]

/** Verifications by trusted keys: it remembers imported keys, and asks for trust each time. */
export const createSigners = (trust: Trust) => {
  const toKey = createKeyImporter()
  /** Which keys the latest verifications of a business needed: asked for at once, they save the first pass. Never the keys themselves. */
  const latest = new LRUCache<string, Map<string, Wanted>>({ max: 1000 })

  return {
    importKey: toKey,
    /**
     * Does `work` with the keys that a business trusts now, and with the keys of merchants among those it asked for. `FindKeys`
     * cannot wait, so a first pass finds which keys are needed: the last result counts.
     */
    async withTrust<Result>(
      tenant: string,
      work: (findKeys: Verification['findKeys'], merchants: MerchantKey[]) => Result,
    ): Promise<Result> {
      const known = new Map<string, { keys: PublicKey[]; merchants: MerchantKey[] }>()
      const load = (wanted: Map<string, Wanted>): Promise<unknown> =>
        Promise.all(
          [...wanted].map(async ([name, { role, kid, issuer }]) => {
            const query =
              kid !== undefined
                ? { kid, ...(issuer && { issuer }) }
                : issuer !== undefined
                  ? { issuer }
                  : null
            const found = query && (await trust.find({ business_id: tenant, role, ...query }))
            const keys = (found?.keys ?? []).map((one) => ({
              key: toKey(one.jwk, 'trust'),
              issuer: one.issuer,
            }))
            const merchants = role === 'merchant' ? keys : []
            known.set(name, { keys: keys.map(({ key }) => key), merchants })
          }),
        )
      await load(latest.get(tenant) ?? new Map())
      for (;;) {
        const used = new Map<string, Wanted>()
        const merchants: MerchantKey[] = []
        const result = work((wanted) => {
          const name = JSON.stringify([wanted.role, wanted.kid, wanted.issuer])
          used.set(name, wanted)
          const entry = known.get(name)
          if (entry) merchants.push(...entry.merchants)
          return entry?.keys ?? []
        }, merchants)
        const missing = new Map([...used].filter(([name]) => !known.has(name)))
        if (missing.size === 0) {
          latest.set(tenant, used)
          return result
        }
        await load(missing)
      }
    },
  }
}

/** The signature of a cart of AP2 0.1, by any of its names. */
const readCartSignature = (cart: Record<string, unknown>): string =>
  String(cart.merchant_authorization ?? cart.merchantAuthorization ?? cart.merchant_signature)

/** Who is paid by a cart of AP2 0.1 that was verified, and what is unique about it. In the demo profile the payee is not trusted. */
export const findCartMerchant = (text: string, merchants: readonly MerchantKey[]) => {
  const cart = JSON.parse(text) as { contents: Record<string, unknown> }
  const signature = readCartSignature(cart)
  const { id, merchant_name, merchantName } = cart.contents
  return isMerchantPlaceholder(signature)
    ? { issuer: `demo:${merchant_name ?? merchantName}`, identity: toDemoIdentity(String(id)) }
    : findMerchant(signature, merchants)
}

/** Whose trusted key made the signature of a cart or checkout that was verified, and what is unique about it. */
export const findMerchant = (token: string, merchants: readonly MerchantKey[]) => {
  const jws = parseJws(unwrapToken(token), 'merchant')
  // with one candidate the signature was verified by it
  const signer = merchants.length === 1 ? merchants[0] : merchants.find(({ key }) => verifyJws(jws, key))
  return signer ? { issuer: signer.issuer, identity: identify(jws, signer.key) } : null
}
