import { z } from 'zod'
import { readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { MasonError } from '../../state/errors.ts'
import { ap2Defaults, ap2Keys, ap2Texts } from '../ap2-wire.ts'
import { agentNameSchema, dataPart, failCall, sayProblems, searchShop } from './agent-replies.ts'
import { findRefundDays, getLatest, type Intent, isUnwanted, type ShownOffer } from './shopping-results.ts'
import { listOffers } from './wording.ts'

/** Why the user does not want an offer; null: they may. */
const findObjection = (offer: ShownOffer, intent: Intent, now: Date) => {
  const { expires_at, merchant } = offer
  if (expires_at !== null && Date.parse(expires_at) <= now.getTime()) return 'have expired'
  if (intent.requires_refundability && findRefundDays(offer) === 0) return 'cannot be returned'
  return isUnwanted(merchant, intent) ? 'are sold by another merchant' : null
}

/** Sends the confirmed intent to a merchant. It has no argument for what is sought: that is what the user confirmed. */
export default defineTool({
  name: 'find_products',
  description:
    'Sends what the user has confirmed to a merchant, and returns its offers. Then call choose_cart with the best ones first.',
  kinds: ['call'],
  provenance: 'agent',
  input: z.strictObject({
    agent: agentNameSchema.optional().describe('Which merchant, where there are several'),
  }),
  reads: ['action_history'],
  writes: [],
  needs: ['agents', 'payments', 'blobs'],
  isAvailable: async ({ agents }) => (await agents.list('merchant')).length > 0,
  async run(state, context) {
    const { agent: named } = readCallInput(context)
    const now = context.clock.now()
    const missing = 'the user has not confirmed what to buy'
    const { confirmed, intent } = await getLatest(state, 'create_intent_mandate', context.blobs, missing)
    const isOver = Date.parse(intent.intent_expiry) <= now.getTime()
    if (!confirmed || isOver)
      throw new MasonError('invalid_request', isOver ? 'what the user confirmed has expired' : missing, {
        remedy: 'call create_intent_mandate first',
      })
    const { agent, reply } = await searchShop(context, named, [
      { text: ap2Texts.findProducts },
      dataPart(ap2Keys.intentMandate, intent),
      // what a merchant of 0.2 reads
      dataPart(ap2Keys.catalogSearch, intent.natural_language_description),
    ])
    if ('problem' in reply) return failCall(context, `${agent} did not search`, reply.problem)
    const { offers, problems, risk_data } = reply.parts
    const judged = offers.map(({ signed: _signed, ...offer }) => ({
      offer,
      objection: findObjection(offer, intent, now),
    }))
    const wanted = judged.flatMap(({ offer, objection }) => (objection === null ? [offer] : []))
    const objections = [...new Set(judged.flatMap(({ objection }) => objection ?? []))].map(
      (why) => `${judged.filter(({ objection }) => objection === why).length} offers ${why}.`,
    )
    const text =
      wanted.length === 0
        ? `${agent} has nothing that fits.`
        : `${listOffers(wanted, now, agent)}\n\nCart ids, in this order: ${wanted.map(({ cart_id }) => cart_id).join(', ')}`
    return context.checkpoint({
      summary: `${agent} offers ${wanted.length} products`,
      result: {
        text: [text, ...objections, sayProblems(problems).trim()].filter(Boolean).join('\n'),
        found: wanted.length,
        agent,
        context_id: reply.context_id,
        offers: wanted,
        risk_data: risk_data ?? ap2Defaults.riskData,
      },
    })
  },
})
