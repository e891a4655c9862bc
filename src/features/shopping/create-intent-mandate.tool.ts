import { z } from 'zod'
import { errorDraft, readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { MasonError } from '../../state/errors.ts'
import { toPlainLine } from '../../state/text/plain-line.ts'
import { findPrice } from './find-price.ts'
import type { Intent } from './shopping-results.ts'
import { answerMs, askForIntent, isYes } from './wording.ts'

const hourMs = 60 * 60_000
const names = z.array(z.string().trim().min(1).max(200)).max(20)

/** Writes down what the user wants and asks them to confirm exactly that. Nothing has been sent to anyone yet. */
export default defineTool({
  name: 'create_intent_mandate',
  description:
    'Writes down what the user wants to buy, shows it to the user and asks for confirmation. find_products then sends exactly ' +
    'this to a merchant. Leave all prices and budgets out: merchants read it. Use them to choose among what is found.',
  kinds: ['call'],
  // the answer of a user who wants something else
  provenance: 'user',
  input: z.strictObject({
    description: z.string().trim().min(3).max(2000).describe('The item in detail, without any price'),
    merchants: names.optional().describe('The only merchants that the user wants; any when left out'),
    skus: names.optional().describe('Article numbers that the user named; any when left out'),
    requires_refundability: z.boolean().optional().describe('Whether the user must be able to return it'),
    expires_in_hours: z.int().min(1).max(720).optional().describe('24 when left out'),
  }),
  reads: [],
  writes: [],
  needs: ['agents'],
  isAvailable: async ({ agents }) => (await agents.list('merchant')).length > 0,
  async run(_state, context) {
    const { description, merchants = [], skus = [], ...input } = readCallInput(context)
    const price = findPrice(description)
    if (price !== null)
      throw new MasonError('invalid_request', `the description names a price: "${price}"`, {
        remedy: 'leave it out; use the price to choose among the products that are found',
      })
    const now = context.clock.now()
    const intent: Intent = {
      // it has no signature, so the user confirms each cart (AP2.md 1.2)
      user_cart_confirmation_required: true,
      natural_language_description: toPlainLine(description, 2000),
      merchants,
      skus,
      requires_refundability: input.requires_refundability ?? false,
      intent_expiry: new Date(now.getTime() + (input.expires_in_hours ?? 24) * hourMs).toISOString(),
    }
    const reply = await context.ask({
      question: askForIntent(intent, now),
      schema: { type: 'string', minLength: 1, maxLength: 4000 },
      options: ['Yes', 'No'],
      expires_in_ms: answerMs,
    })
    if (reply.kind === 'expired')
      return context.checkpoint(
        errorDraft('No confirmation came in time', 'The user did not confirm it in time. Nothing was sent.'),
      )
    if (isYes(reply.answer))
      return context.checkpoint({
        summary: 'The user confirmed what to buy',
        result: {
          text: 'The user confirmed it. Call find_products.',
          intent,
          confirmed: true,
          provenance: 'agent',
        },
      })
    return context.checkpoint({
      summary: 'The user did not confirm it, and said what to change',
      result: { text: String(reply.answer), intent, confirmed: false },
    })
  },
})
