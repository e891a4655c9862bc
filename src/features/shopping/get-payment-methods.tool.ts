import { z } from 'zod'
import { readCallInput } from '../../graph/call-drafts.ts'
import { chooseAgent } from '../../graph/choose-agent.ts'
import { defineTool } from '../../graph/definitions.ts'
import { MasonError } from '../../state/errors.ts'
import { ap2Keys, ap2Texts } from '../ap2-wire.ts'
import { agentNameSchema, askShop, dataPart, failCall } from './agent-replies.ts'
import { checkSaidByUser, getSale } from './shopping-results.ts'
import { answerMs } from './wording.ts'

/** Gets the ways to pay that both the user has and the merchant takes. The user chooses among them, not the model. */
export default defineTool({
  name: 'get_payment_methods',
  description:
    'Gets the payment methods of the user that the merchant of the final cart takes, and asks the user which one to use. Call it ' +
    'after update_cart.',
  kinds: ['call'],
  provenance: 'agent',
  input: z.strictObject({
    email: z
      .email()
      .max(200)
      .optional()
      .describe('Of the account of the user; that of get_shipping_address when left out'),
    agent: agentNameSchema.optional().describe('Which credentials provider, where there are several'),
  }),
  reads: ['prompts', 'action_history'],
  writes: [],
  needs: ['agents', 'payments', 'blobs'],
  isAvailable: async ({ agents }) => (await agents.list('credentials-provider')).length > 0,
  async run(state, context) {
    const { email, agent: named } = readCallInput(context)
    const { blobs, checkpoint } = context
    const { sale, account } = await getSale(state, blobs)
    const user_email = email ?? account?.user_email ?? null
    if (user_email === null)
      throw new MasonError('invalid_request', 'it is not known which account the user has', {
        remedy: 'ask the user for the email address of their account, and give it as email',
      })
    checkSaidByUser(state, user_email, 'email address')
    const known = named ?? (email === undefined ? account?.credentials_agent : null)
    const { name: agent } = await chooseAgent(context.agents, 'credentials-provider', known)
    const reply = await askShop(context, {
      agent,
      parts: [
        { text: ap2Texts.getMethods },
        dataPart(ap2Keys.userEmail, user_email),
        ...sale.methods.map((method) => dataPart(ap2Keys.paymentMethod, method)),
      ],
      ...(sale.context_id !== null && { context_id: sale.context_id }),
    })
    if ('problem' in reply) return failCall(context, `${agent} gave no payment methods`, reply.problem)
    const [first, ...others] = reply.parts.aliases ?? []
    if (first === undefined)
      return failCall(
        context,
        'No payment method fits',
        `${user_email} has no payment method at ${agent} that this merchant takes. Ask the user for another account, or choose another merchant.`,
      )
    const options = [first, ...others]
    const answer =
      others.length === 0
        ? null
        : await context.ask({
            question: 'Which payment method would you like to use?',
            schema: { type: 'string', enum: options },
            options,
            expires_in_ms: answerMs,
          })
    if (answer?.kind === 'expired')
      return failCall(context, 'No payment method was chosen', 'no payment method was chosen in time.')
    const alias = answer ? String(answer.answer) : first
    const next = sale.version === '0.1' ? 'get_payment_credential_token' : context.payments.approvalTool
    return checkpoint({
      summary: `Pays with ${alias}`.slice(0, 200),
      result: {
        text: `${others.length === 0 ? 'The only payment method that fits is' : 'The user chose'} ${alias}. Next: ${next}.`,
        cart_id: sale.signed_id,
        version: sale.version,
        credentials_agent: agent,
        alias,
        context_id: reply.context_id,
        user_email,
      },
    })
  },
})
