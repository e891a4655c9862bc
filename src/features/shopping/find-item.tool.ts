import { z } from 'zod'
import { readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { MasonError } from '../../state/errors.ts'
import type { FeatureServices } from '../../state/ports/services.ts'
import { ap2Defaults, ap2Keys, ap2Texts } from '../ap2-wire.ts'
import { agentNameSchema, dataPart, failCall, sayProblems, searchShop } from './agent-replies.ts'

const listMandates = async ({ mandates }: Pick<FeatureServices, 'mandates'>) =>
  (await mandates.listUsable()).flatMap((one) => (one.wallet ? [{ ...one, wallet: one.wallet }] : []))

/** Looks for an item of an open mandate. A merchant reads its title alone: no intent of the user, and none of their limits. */
export default defineTool({
  name: 'find_item',
  description:
    'Looks at a merchant for an item that the user lets you buy while they are away, by an open mandate, without asking them. Then ' +
    'call get_shipping_address, update_cart and use_open_mandate, one after the other.',
  kinds: ['call'],
  provenance: 'agent',
  input: z.strictObject({
    mandate_id: z.string().max(100).optional().describe('Which open mandate, where the user has several'),
    item: z.string().min(1).max(200).optional().describe('The id of an item; the first when left out'),
    agent: agentNameSchema.optional().describe('Which merchant, where there are several'),
  }),
  reads: [],
  writes: [],
  needs: ['agents', 'payments', 'mandates'],
  isAvailable: async (context) =>
    (await context.agents.list('merchant')).length > 0 && (await listMandates(context)).length > 0,
  async run(_state, context) {
    const { mandate_id: named, item, agent: seller } = readCallInput(context)
    const { id: mandate_id, items, wallet } = context.mandates.choose(await listMandates(context), named)
    const allowed = items.flatMap(({ any_of }) => any_of)
    const wanted = item === undefined ? allowed[0] : allowed.find(({ id }) => id === item)
    if (!wanted)
      throw new MasonError('invalid_request', `the open mandate has no item "${item}"`, {
        remedy: `name one of these as item: ${allowed.map(({ id }) => id).join(', ')}`,
      })
    const name = wanted.title ?? wanted.id
    const search = [{ text: ap2Texts.searchCatalog }, dataPart(ap2Keys.catalogSearch, name)]
    const { agent, reply } = await searchShop(context, seller, search)
    if ('problem' in reply) return failCall(context, `${agent} did not search`, reply.problem)
    const { offers, problems, risk_data } = reply.parts
    const found = offers.find(({ version, label }) => version === '0.2' && label === name)
    if (!found)
      return failCall(
        context,
        `${agent} does not have it`,
        `${agent} offers no "${name}" in AP2 0.2. Tell the user, or try another merchant or item.${sayProblems(problems)}`,
      )
    const { signed: _signed, ...offer } = found
    return context.checkpoint({
      summary: `${agent} has ${name}`.slice(0, 200),
      result: {
        text: `${agent} has ${name} (cart ${offer.cart_id}) for ${offer.total.text}. Next: get_shipping_address with the email ${wallet.user_email} and the agent ${wallet.agent}, then update_cart.`,
        agent,
        context_id: reply.context_id,
        mandate_id,
        offer,
        risk_data: risk_data ?? ap2Defaults.riskData,
      },
    })
  },
})
