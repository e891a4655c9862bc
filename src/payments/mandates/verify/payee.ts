import { checkTotal } from '../v2/total.ts'
import type { Checkout, PaymentMandateV2 } from '../v2/types.ts'
import { createViolation, type Violation } from '../violations.ts'

/** The origin of an address; other texts are themselves. */
const toOrigin = (address: string | null | undefined): string | null => {
  if (!address) return null
  return URL.canParse(address) ? new URL(address).origin : address
}

/** What a checkout says beside its types: its total, and whom it names. `issuer` is whose trusted key signed it. */
export const checkPayee = (checkout: Checkout, mandate: PaymentMandateV2, issuer: string): Violation[] => {
  const { merchant } = checkout
  const { payee } = mandate
  const violations = checkTotal(checkout, mandate)
  const isNamed =
    !merchant || (merchant.id && payee.id ? merchant.id === payee.id : merchant.name === payee.name)
  const isIssuer = issuer === payee.id || toOrigin(issuer) === toOrigin(payee.website)
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
