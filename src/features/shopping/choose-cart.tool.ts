import { z } from 'zod'
import { readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { toPlainLine } from '../../state/text/plain-line.ts'
import type { ReadonlyAction } from '../../state/turn.ts'
import { failCall } from './agent-replies.ts'
import { findChosenOffer, toOption } from './chosen-offer.ts'
import { findLatest } from './shopping-results.ts'
import { answerMs, listOffers } from './wording.ts'

const maxWhyChars = 600

/** What the user answered last time, where that was none of the offers of this search. */
const readUnknown = (actions: readonly ReadonlyAction[], search: number): string | null => {
  const last = actions.findLast(({ node, id }) => node === 'choose_cart' && id > search)
  return typeof last?.result.no_such_cart === 'string' ? last.result.no_such_cart : null
}

/** Shows offers to the user, who chooses: the model only orders them and says why. */
export default defineTool({
  name: 'choose_cart',
  description:
    'Shows offers of find_products to the user with price, expiry and refund period, recommends the first one, and asks which ' +
    'one they want. If the answer names none of them, it is the result: call this again, or search for something else.',
  kinds: ['call'],
  // the answer of a user who names none of the offers
  provenance: 'user',
  input: z.strictObject({
    cart_ids: z
      .array(z.string().min(1).max(500))
      .min(1)
      .max(10)
      .describe('The best match first. Leave out what is dearer than the user wants'),
    why: z
      .string()
      .trim()
      .min(10)
      .max(maxWhyChars)
      .describe('2 to 3 lines for the user: why you recommend the first one'),
  }),
  reads: ['action_history'],
  writes: [],
  needs: ['blobs', 'agents'],
  isAvailable: async ({ agents }) => (await agents.list('merchant')).length > 0,
  async run(state, context) {
    const { cart_ids, why } = readCallInput(context)
    const found = await findLatest(state, 'find_products', context.blobs)
    if (!found)
      return failCall(context, 'There are no offers', 'there are no offers yet: call find_products first.')
    const { offers, id, ...sale } = found
    const ids = [...new Set(cart_ids)]
    const shown = ids.flatMap((one) => offers.find(({ cart_id }) => cart_id === one) ?? [])
    const unknown = ids.filter((one) => !offers.some(({ cart_id }) => cart_id === one))
    if (unknown.length > 0)
      return failCall(
        context,
        'There is no such cart',
        `there is no cart "${unknown.join('", "')}". Choose among: ${offers.map(({ cart_id }) => cart_id).join(', ')}.`,
      )
    const missed = readUnknown(state.action_history.flat(), id)
    const reply = await context.ask({
      question: [
        ...(missed === null ? [] : [`There is no item "${missed}" in this list. Please choose again.\n`]),
        listOffers(shown, context.clock.now(), sale.agent),
        `\nRecommendation: ${toPlainLine(why, maxWhyChars)}`,
        '\nWhich item would you like to purchase?',
      ].join('\n'),
      schema: { type: 'string', minLength: 1, maxLength: 4000 },
      options: shown.map(toOption),
      expires_in_ms: answerMs,
    })
    if (reply.kind === 'expired')
      return failCall(context, 'No item was chosen in time', 'no item was chosen in time.')
    const answer = String(reply.answer)
    const chosen = findChosenOffer(answer, shown)
    if (!chosen)
      return context.checkpoint({
        summary: 'The user named none of the offers',
        result: { text: answer, no_such_cart: toPlainLine(answer, 100) },
      })
    return context.checkpoint({
      summary: `The user chose ${chosen.label}`.slice(0, 200),
      result: {
        text: `The user chose ${chosen.label} (cart ${chosen.cart_id}) for ${chosen.total.text}. Next: get_shipping_address, then update_cart.`,
        ...sale,
        cart_id: chosen.cart_id,
        offer: chosen,
        provenance: 'agent',
      },
    })
  },
})
