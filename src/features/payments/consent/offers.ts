import { queryOne } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { findSigner, type Verification } from '../mandates/tokens/chain.ts'
import { checkTimes } from '../mandates/tokens/claims.ts'
import { parseJws } from '../mandates/tokens/jws.ts'
import { attempt, toRefuse } from '../mandates/tokens/token-error.ts'
import { checkoutSchema, paymentMandateSchema } from '../mandates/v2/types.ts'
import { verifyCart } from '../mandates/verify/carts.ts'
import { checkPayee } from '../mandates/verify/payee.ts'
import { hasPlaceholder } from '../mandates/verify/placeholders.ts'
import { createViolation, parseBy, readBy, type Violation } from '../mandates/violations.ts'
import type { UnsignedPayment } from '../ports/run-payments.ref.ts'
import { createSigners, findCartMerchant, findMerchant, type MerchantKey } from '../trust/signers.ts'
import { createTrust } from '../trust/trust.ts'
import {
  type ConsentFacts,
  type ConsentRequest,
  type OfferFacts,
  readFacts,
  refuseRequest,
} from './content.ts'
import { readProposal } from './proposals.ts'

type Known = Pick<Verification, 'findKeys' | 'now' | 'audience' | 'skipped'>

/** Who signed the cart or checkout, or why it cannot be paid. */
const verifyOffer = (
  request: UnsignedPayment,
  { findKeys, now, audience, skipped }: Known,
  merchants: readonly MerchantKey[],
): string | Violation[] => {
  const unknown = [createViolation('payee_not_bound', 'cart', 'is signed by no trusted merchant')]
  if (request.version === '0.1') {
    const verdict = verifyCart(request.cart, { findKeys, now, audience, ...(skipped && { skipped }) })
    if (!verdict.ok) return verdict.violations
    return findCartMerchant(request.cart, merchants)?.issuer ?? unknown
  }
  const violations: Violation[] = []
  const claims = attempt(violations, () => {
    const jws = parseJws(request.checkout, 'checkout')
    findSigner(jws, 'merchant', findKeys)
    checkTimes(jws.payload, now, toRefuse(violations, 'checkout'))
    return jws.payload
  })
  if (violations.length > 0) return violations
  const checkout = parseBy(checkoutSchema, claims)
  const mandate = readBy(paymentMandateSchema, request.payment)
  const issuer = findMerchant(request.checkout, merchants)?.issuer
  if (!checkout.ok || !mandate.ok || issuer === undefined) return unknown
  const refused = checkPayee(checkout.value, mandate.value, issuer)
  return refused.length > 0 ? refused : issuer
}

/**
 * What a person reads before they sign: the facts of the texts, and whose trusted key signed the cart or checkout, by the keys that
 * the business trusts now. Throws `invalid_request` for an offer that the executor would not pay: no trusted merchant signed it,
 * it is over, or another merchant would be paid.
 */
export const readOffer = async (
  sql: Sql,
  tenant: string,
  request: UnsignedPayment,
  audience: string,
): Promise<OfferFacts> => {
  const facts = readFacts(request)
  const clock = await queryOne<{ now: number }>(
    sql,
    'SELECT extract(epoch FROM clock_timestamp())::float8 AS now',
    [],
  )
  const now = Math.floor(clock?.now ?? 0)
  const trust = createTrust(sql)
  const isDemo = hasPlaceholder(request) && (await trust.acceptsPlaceholders(tenant))
  const offer = await createSigners(trust).withTrust(tenant, (findKeys, merchants) =>
    verifyOffer(request, { findKeys, now, audience, ...(isDemo && { skipped: [] }) }, merchants),
  )
  return typeof offer === 'string' ? { ...facts, payee_issuer: offer, demo: isDemo } : refuseRequest(offer)
}

/** What a person reads before they sign, whatever it is. Throws as `readOffer` and `readProposal`. */
export const readConsent = (
  sql: Sql,
  tenant: string,
  request: ConsentRequest,
  audience: string,
): Promise<ConsentFacts> =>
  request.version === '0.2-open'
    ? readProposal(sql, tenant, request)
    : readOffer(sql, tenant, request, audience)
