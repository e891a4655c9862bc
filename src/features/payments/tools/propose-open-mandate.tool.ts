import { z } from 'zod'
import { readCallInput } from '../../../graph/call-drafts.ts'
import { chooseAgent } from '../../../graph/choose-agent.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { MasonError } from '../../../state/errors.ts'
import { termsSchema } from '../ports/open-mandate-terms.ts'
import { toLimitsText } from '../runs/choose-mandate.ts'
import { chooseProvider } from './choose-provider.ts'

const maxLifetimeMs = 366 * 86_400_000

/** Begins an open mandate: limits within which a later run pays without the user, who reads and signs them first. */
export default defineTool({
  name: 'propose_open_mandate',
  description:
    'Asks the user to sign limits within which you may buy later while they are away: from whom, what, for how much, until when. ' +
    'Returns when the user has signed or refused.',
  kinds: ['call'],
  steps: ['request_open_mandate'],
  input: z.strictObject({
    ...termsSchema.shape,
    provider: z.string().max(200).optional().describe('By whom to pay, where there are several'),
  }),
  reads: [],
  writes: [],
  needs: ['payments', 'mandates', 'agents'],
  isAvailable: async ({ payments }) => (await payments.listProviders()).length > 0,
  async run(_state, context) {
    const { provider, ...terms } = readCallInput(context)
    const leftMs = Date.parse(terms.until) - context.clock.now().getTime()
    if (!(leftMs > 0 && leftMs <= maxLifetimeMs))
      throw new MasonError('invalid_request', 'until is not within a year from now', {
        remedy: `name a time after ${context.clock.now().toISOString()}`,
      })
    const { wallet, method } = terms
    const providers = await context.payments.listProviders()
    if (wallet ? method === null : !providers.some(({ kind }) => kind === 'card'))
      throw new MasonError('invalid_request', `${wallet ? 'method' : 'wallet'} is missing`, {
        remedy: 'name the wallet of the user, and as method what is to be charged, as the wallet names it',
      })
    if (wallet) await chooseAgent(context.agents, 'credentials-provider', wallet.agent)
    const provider_id = await chooseProvider(context.payments, provider, wallet ? 'agent' : 'card')
    const limits = await context.mandates.describe(terms)
    return context.checkpoint({
      summary: 'Prepared an open mandate for the user to sign',
      result: { mandate_id: context.mandates.newId(), provider_id, terms, text: toLimitsText(limits) },
      next: ['request_open_mandate'],
    })
  },
})
