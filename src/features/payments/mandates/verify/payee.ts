import type { Hop } from '../tokens/chain.ts'
import { isObject } from '../tokens/encoding.ts'
import { checkTotal } from '../v2/total.ts'
import type { Checkout, PaymentMandateV2 } from '../v2/types.ts'
import { createViolation, type Violation } from '../violations.ts'

/** The origin of a web address. Others have none: that of every DID is the text "null". */
const toWebOrigin = (address: string): string | null =>
  /^https?:/i.test(address) && URL.canParse(address) ? new URL(address).origin : null

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** The issuers that a merchant, as a mandate names it, can have: its id, its website, and the origin of that. */
export const toIssuerNames = ({ id, website }: { id?: unknown; website?: unknown }): Set<string> =>
  new Set([id, website, isText(website) ? toWebOrigin(website) : null].filter(isText))

const merchantLists = ['checkout.allowed_merchants', 'payment.allowed_payees']

/**
 * Constraints match merchants by the ids that checkouts claim. So each list of merchants in open mandates must also name who is paid:
 * the issuer whose trusted key signed the checkout.
 */
export const checkAllowedIssuers = (
  chain: string,
  hops: readonly Pick<Hop, 'content' | 'sdJwt'>[],
  issuer: string,
): Violation[] =>
  hops.flatMap(({ content: { constraints }, sdJwt }) =>
    (Array.isArray(constraints) ? constraints : []).flatMap((one, i) => {
      if (!isObject(one) || !merchantLists.includes(String(one.type))) return []
      const allowed = (Array.isArray(one.allowed) ? one.allowed : []).filter(isObject)
      if (allowed.some((entry) => toIssuerNames(entry).has(issuer))) return []
      const field = `${chain}.${sdJwt.jws.field}.constraints[${i}].allowed`
      return [
        createViolation(
          'payee_not_bound',
          field,
          `has no entry of ${issuer}, who signed the checkout: name merchants with their website`,
        ),
      ]
    }),
  )

/** What a checkout says beside its types: its total, and whom it names. `issuer` is whose trusted key signed it. */
export const checkPayee = (checkout: Checkout, mandate: PaymentMandateV2, issuer: string): Violation[] => {
  const { merchant } = checkout
  const { payee } = mandate
  const violations = checkTotal(checkout, mandate)
  const isNamed =
    !merchant || (merchant.id && payee.id ? merchant.id === payee.id : merchant.name === payee.name)
  const origin = toWebOrigin(issuer)
  const isIssuer =
    toIssuerNames(payee).has(issuer) || (origin !== null && origin === toWebOrigin(payee.website ?? ''))
  if (!isNamed || !isIssuer)
    violations.push(
      createViolation(
        'payee_not_bound',
        'payee',
        `is not who signed the checkout, ${issuer}: pay the merchant that sells it`,
      ),
    )
  return violations
}
