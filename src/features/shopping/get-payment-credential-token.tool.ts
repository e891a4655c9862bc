import { z } from 'zod'
import { chooseAgent } from '../../graph/choose-agent.ts'
import { defineTool } from '../../graph/definitions.ts'
import { ap2Keys, ap2Texts } from '../ap2-wire.ts'
import { askShop, dataPart, failCall } from './agent-replies.ts'
import { getLatest, getSale } from './shopping-results.ts'

/**
 * Gets the token of the chosen payment method, which stands in the mandate of AP2 0.1. It is in the result alone, never in what a
 * model reads. In 0.2 the executor gets it, for the signed mandate.
 */
export default defineTool({
  name: 'get_payment_credential_token',
  description:
    'Gets the token of the payment method that the user chose. Call it after get_payment_methods, and then create_payment_mandate.',
  kinds: ['call'],
  provenance: 'agent',
  input: z.strictObject({}),
  reads: ['action_history'],
  writes: [],
  needs: ['agents', 'payments', 'blobs'],
  isAvailable: async ({ agents }) => (await agents.list('credentials-provider')).length > 0,
  async run(state, context) {
    const { blobs, agents, checkpoint } = context
    await getSale(state, blobs)
    const missing = 'the user has not chosen a payment method'
    const { id: _id, version, ...method } = await getLatest(state, 'get_payment_methods', blobs, missing)
    const { credentials_agent, alias, context_id, user_email } = method
    if (version === '0.2')
      return checkpoint({
        summary: 'The token comes with the payment',
        result: {
          text: 'This merchant needs no token before the user approves. Call create_payment_mandate.',
        },
      })
    const { url } = await chooseAgent(agents, 'credentials-provider', credentials_agent)
    const reply = await askShop(context, {
      agent: credentials_agent,
      parts: [
        { text: ap2Texts.getToken },
        dataPart(ap2Keys.methodAlias, alias),
        dataPart(ap2Keys.userEmail, user_email),
      ],
      ...(context_id !== null && { context_id }),
    })
    if ('problem' in reply) return failCall(context, `${credentials_agent} gave no token`, reply.problem)
    const { token: value } = reply.parts
    if (value === null)
      return failCall(
        context,
        `${credentials_agent} gave no token`,
        `${credentials_agent} gave no token for ${alias}. Call get_payment_methods again, and let the user choose another one.`,
      )
    return checkpoint({
      summary: 'Got the token of the payment method',
      result: {
        text: `The token of ${alias} is kept for the payment. Next: create_payment_mandate.`,
        ...method,
        token: { value, url },
      },
    })
  },
})
