import { z } from 'zod'
import { defineTool } from '../../graph/definitions.ts'
import { ap2Defaults, ap2Keys, ap2Texts } from '../ap2-wire.ts'
import { type AgentOffer, askShop, dataPart, failCall, sayProblems } from './agent-replies.ts'
import { findLatest, getLatest, isUnwanted, type ShownOffer } from './shopping-results.ts'

/**
 * What a merchant changed since the user chose; null: nothing. Shipping, tax and the like may come on top, as lines that the offer
 * did not have: the total counts, since the samples' own lines do not add up (AP2.md 1.5, row 10).
 */
export const findOfferChange = (offer: ShownOffer, signed: AgentOffer): string | null => {
  if (signed.version !== offer.version) return 'speaks another version of AP2 than before'
  if (signed.total.currency !== offer.total.currency)
    return `asks ${signed.total.currency} in place of ${offer.total.currency}`
  if (signed.label !== offer.label) return `sells "${signed.label}" in place of "${offer.label}"`
  if (offer.merchant !== null && signed.merchant !== offer.merchant)
    return `names ${signed.merchant === null ? 'no merchant' : `"${signed.merchant}" as the merchant`} in place of "${offer.merchant}"`
  const known = new Set(offer.lines.map(({ label }) => label))
  const daysOf = (one: Pick<ShownOffer, 'lines' | 'refund_days'>, label?: string): number | null =>
    one.lines.find((line) => line.label === label)?.refund_days ?? one.refund_days
  for (const label of [undefined, ...known]) {
    const [before, now] = [daysOf(offer, label) ?? 0, daysOf(signed, label) ?? 0]
    if (now < before) return `takes it back for ${now} days in place of ${before}`
  }
  const added = signed.lines.filter(({ label }) => !known.has(label))
  const foreign = added.find(({ price }) => price.currency !== offer.total.currency)
  if (foreign) return `asks ${foreign.price.text} for ${foreign.label}, in another currency than the total`
  const expected = added.reduce((sum, { price }) => sum + price.minor, offer.total.minor)
  if (signed.total.minor === expected) return null
  const extra = added.map(({ label, price }) => ` plus ${price.text} ${label}`).join('')
  return `asks ${signed.total.text}, where the offer was ${offer.total.text}${extra}`
}

/** Gives the merchant the address and gets the cart that can be paid: signed, with the final total. It has no argument. */
export default defineTool({
  name: 'update_cart',
  description:
    'Sends the shipping address to the merchant of the chosen cart, and gets its final, signed cart with shipping and tax. Call ' +
    'it after choose_cart and get_shipping_address; it takes what these found.',
  kinds: ['call'],
  provenance: 'agent',
  input: z.strictObject({}),
  reads: ['action_history'],
  writes: [],
  needs: ['agents', 'payments', 'blobs'],
  isAvailable: async ({ agents }) => (await agents.list('merchant')).length > 0,
  async run(state, context) {
    const { blobs, clock, checkpoint } = context
    const choice = await getLatest(state, 'choose_cart', blobs, 'the user has not chosen a cart')
    const { address } = await getLatest(state, 'get_shipping_address', blobs, 'there is no shipping address')
    const { agent, context_id, risk_data, offer, mandate_id } = choice
    const reply = await askShop(context, {
      agent,
      parts: [
        { text: offer.version === '0.1' ? ap2Texts.updateCart : ap2Texts.createCheckout },
        dataPart(ap2Keys.cartId, offer.cart_id),
        dataPart(ap2Keys.shippingAddress, address),
        dataPart(ap2Keys.shoppingAgentId, ap2Defaults.shoppingAgentId),
      ],
      ...(context_id !== null && { context_id }),
    })
    if ('problem' in reply) return failCall(context, `${agent} gave no final cart`, reply.problem)
    const { parts } = reply
    const fail = (what: string) =>
      failCall(
        context,
        `The cart of ${agent} cannot be paid`,
        `${agent} ${what}. Nothing is paid. Tell the user, and search again.${sayProblems(parts.problems)}`,
      )
    const final = parts.offers.find(({ cart_id }) => cart_id === offer.cart_id)
    const [other] = parts.offers
    if (!final)
      return fail(
        other ? `answered with cart "${other.cart_id}" in place of "${offer.cart_id}"` : 'sent no cart',
      )
    const change = findOfferChange(offer, final)
    if (change !== null) return fail(change)
    const { signed, total, lines, expires_at, merchant } = final
    // an offer of AP2 0.2 names no merchant
    const wish = mandate_id === undefined ? await findLatest(state, 'create_intent_mandate', blobs) : null
    if (wish && isUnwanted(merchant, wish.intent))
      return fail(`names "${merchant}" as the merchant, whom the user does not want`)
    if (signed === null) return fail('sent a cart without a signature, which is an offer and cannot be paid')
    if (expires_at !== null && Date.parse(expires_at) <= clock.now().getTime())
      return fail('sent a cart that has expired')
    const details = lines.map(({ label, price }) => `${label}: ${price.text}`)
    return checkpoint({
      summary: `The final total is ${total.text}`,
      result: {
        text: [
          `The final cart is signed. Total: ${total.text}. Sold by: ${merchant ?? agent}.`,
          ...details,
          mandate_id === undefined ? 'Next: get_payment_methods.' : `Next: use_open_mandate ${mandate_id}.`,
        ].join('\n'),
        agent,
        context_id: reply.context_id,
        cart_id: offer.cart_id,
        version: final.version,
        signed_id: signed.id,
        signed_cart: signed.document,
        methods: parts.methods,
        risk_data: parts.risk_data ?? risk_data,
      },
    })
  },
})
