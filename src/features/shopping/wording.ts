import { findRefundDays, type Intent, type ShownOffer } from './shopping-results.ts'

/** What the user reads, in the words of the demo of AP2. */

/** A user has this long to answer. */
export const answerMs = 24 * 60 * 60_000

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** `in 2 hours`, rounded. */
export const toRelativeTime = (at: string, now: Date): string => {
  const left = Date.parse(at) - now.getTime()
  if (!Number.isFinite(left)) return 'unknown'
  if (left <= 0) return 'expired'
  const [unit, ms] = units.find(([, size]) => left >= size * 0.95) ?? units[2]
  const count = Math.max(1, Math.round(left / ms))
  return `in ${count} ${unit}${count === 1 ? '' : 's'}`
}

const listOrAny = (names: readonly string[]): string => (names.length > 0 ? names.join(', ') : 'Any')

/** The question that comes before anything is sent to a merchant. */
export const askForIntent = (intent: Intent, now: Date): string =>
  [
    'Please confirm the following details for your purchase. Note that this information will be shared with the merchant.',
    '',
    `Item Description: ${intent.natural_language_description}`,
    `User Confirmation Required: ${intent.user_cart_confirmation_required ? 'Yes' : 'No'}`,
    `Merchants: ${listOrAny(intent.merchants)}`,
    `SKUs: ${listOrAny(intent.skus)}`,
    `Refundable: ${intent.requires_refundability ? 'Yes' : 'No'}`,
    `Expires: ${toRelativeTime(intent.intent_expiry, now)}`,
    '',
    'Shall I proceed?',
  ].join('\n')

const toEntry = (offer: ShownOffer, now: Date): string[] => {
  const { label, total, expires_at } = offer
  const refundDays = findRefundDays(offer)
  return [
    `Item: **${label}**`,
    `Price: ${total.text}`,
    ...(expires_at === null ? [] : [`Expires: ${toRelativeTime(expires_at, now)}`]),
    ...(refundDays === null ? [] : [`Refund Period: ${refundDays} day${refundDays === 1 ? '' : 's'}`]),
  ]
}

/** The offers, the best match first, numbered where there are several, and by whom they are sold. */
export const listOffers = (offers: readonly ShownOffer[], now: Date, seller: string): string => {
  const entries = offers.map((offer, at) => {
    const lines = toEntry(offer, now)
    return offers.length === 1 ? lines.join('\n') : `${at + 1}. ${lines.join('\n   ')}`
  })
  return `${entries.join('\n\n')}\n\nSold by: ${offers[0]?.merchant ?? seller}`
}

const yes =
  /^(?:y|yes|yep|yeah|sure|ok|okay|right|correct|proceed|go ahead|confirm(?:ed)?|please do|yes[, ]+(?:please|proceed|go ahead|that is right|that's right))$/i
const hanWord =
  '(?:是|是的|好|好的|好啊|嗯|对|对的|對|行|可以|可以的|没问题|沒問題|同意|确认|確認|确定|確定|继续|繼續|当然|當然)'
const hanYes = new RegExp(`^${hanWord}(?:[, 、]{1,2}${hanWord})?吧?$`)

/** Whether an answer says yes and nothing else. */
export const isYes = (answer: unknown): boolean => {
  if (typeof answer !== 'string') return answer === true
  const said = answer
    .normalize('NFKC')
    .trim()
    .replace(/(?<![.!。])[.!。]+$/, '')
  return yes.test(said) || hanYes.test(said)
}
