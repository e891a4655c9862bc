import { hashText } from '../tokens/encoding.ts'

/** What the published samples of AP2 0.1 write in place of signatures. Only the demo profile takes them. */

/** The checks that a placeholder leaves out, by their names in trails. */
export const skippedChecks = {
  merchant: ['signature of the merchant over the cart', 'merchant is the payee'],
  user: ['signature of the user over cart and payment', 'audience and nonce'],
} as const

const merchantPlaceholder = 'eyJhbGciOiJSUzI1NiIsImtpZIwMjQwOTA...'
const userPlaceholderStart = 'fake_cart_mandate_hash_'

/** Whether a cart has the samples' constant in place of the merchant's signature. */
export const isMerchantPlaceholder = (text: unknown): boolean => text === merchantPlaceholder

/** What must be unique of an unsigned document. */
export const toDemoIdentity = (id: string): string => `demo.${hashText(id)}`

/** What the samples write in place of the user's signature. */
export const toUserPlaceholder = (cartId: string, paymentMandateId: string): string =>
  `${userPlaceholderStart}${cartId}_fake_payment_mandate_hash_${paymentMandateId}`

/** Whether a request has one of them, or looks so. */
export const hasPlaceholder = (request: { version: string; cart?: string; payment: string }): boolean =>
  request.version === '0.1' &&
  (request.cart?.includes(merchantPlaceholder) === true || request.payment.includes(userPlaceholderStart))
