import { z } from 'zod'
import { errorDraft, readCallInput } from '../../graph/call-drafts.ts'
import { chooseAgent } from '../../graph/choose-agent.ts'
import { defineTool } from '../../graph/definitions.ts'
import { MasonError } from '../../state/errors.ts'
import type { Json } from '../../state/runtime-state.ts'
import { toPlainLine } from '../../state/text/plain-line.ts'
import { ap2Keys, ap2Texts } from '../ap2-wire.ts'
import { agentNameSchema, askShop, dataPart, failCall, sayProblems } from './agent-replies.ts'
import { checkSaidByUser, findLatest } from './shopping-results.ts'
import { answerMs, isYes } from './wording.ts'

const line = z.string().trim().min(1).max(200)
const addressSchema = z.strictObject({
  recipient: line.describe('Who receives it'),
  organization: line.optional().describe('The company, where there is one'),
  address_line: z.array(line).min(1).max(5).describe('Street and number'),
  city: line.describe('The city'),
  region: line.optional().describe('The state or province'),
  postal_code: line.optional().describe('The postal code'),
  country: z.string().length(2).describe('Two capital letters, such as US'),
  phone_number: line.optional().describe('With country code'),
})

const parts = [
  'recipient',
  'organization',
  'address_line',
  'dependent_locality',
  'city',
  'region',
  'postal_code',
  'country',
  'phone_number',
]
/** In one line, as a person reads it. */
const showAddress = (address: { [key: string]: Json }): string =>
  toPlainLine(
    parts
      .flatMap((name) => address[name] ?? [])
      .filter((part) => typeof part === 'string')
      .join(', '),
    500,
  )

/** Where the order goes: from the credentials provider of the user, or as the user said and confirmed it. */
export default defineTool({
  name: 'get_shipping_address',
  description:
    'Gets where to ship: with email from the account that the user has at a credentials provider, or with address, as the user ' +
    'has said it, which the user then confirms. Ask the user first which of both they want.',
  kinds: ['call'],
  provenance: 'agent',
  input: z
    .strictObject({
      email: z.email().max(200).optional().describe('Of the account of the user, as they wrote or signed it'),
      address: addressSchema.optional().describe('As the user said it'),
      agent: agentNameSchema.optional().describe('Which credentials provider, where there are several'),
    })
    .refine(({ email, address }) => (email === undefined) !== (address === undefined), {
      message: 'give either email or address',
    }),
  reads: ['prompts', 'action_history'],
  writes: [],
  needs: ['agents', 'payments', 'mandates', 'blobs'],
  isAvailable: async ({ agents }) => (await agents.list('merchant')).length > 0,
  async run(state, context) {
    const { email, address, agent: named } = readCallInput(context)
    if (address !== undefined) {
      const given = Object.fromEntries(
        Object.entries(address).flatMap(([name, part]) => (part ? [[name, part]] : [])),
      )
      const shown = showAddress(given)
      const reply = await context.ask({
        question: `Ship to this address?\n\n${shown}`,
        schema: { type: 'string', minLength: 1, maxLength: 4000 },
        options: ['Yes', 'No'],
        expires_in_ms: answerMs,
      })
      if (reply.kind === 'expired' || !isYes(reply.answer)) {
        const answer =
          reply.kind === 'expired' ? 'no answer came in time' : `they said: ${String(reply.answer)}`
        return context.checkpoint(
          errorDraft('The user did not confirm the address', `The user did not confirm it; ${answer}`),
        )
      }
      return context.checkpoint({
        summary: 'The user confirmed the shipping address',
        result: { text: `Ship to: ${shown}`, address: given, user_email: null, credentials_agent: null },
      })
    }
    if (email === undefined) throw new MasonError('internal', 'a call without email and address')
    const { name: agent } = await chooseAgent(context.agents, 'credentials-provider', named)
    const usable = await context.mandates.listUsable()
    // an account that the user has signed is one that they named
    if (!usable.some(({ wallet }) => wallet?.agent === agent && wallet.user_email === email))
      checkSaidByUser(state, email, 'email address')
    const choice = await findLatest(state, 'choose_cart', context.blobs)
    const reply = await askShop(context, {
      agent,
      parts: [{ text: ap2Texts.getAddress }, dataPart(ap2Keys.userEmail, email)],
      // one conversation for the whole purchase, as in the demo
      ...(choice?.context_id != null && { context_id: choice.context_id }),
    })
    if ('problem' in reply) return failCall(context, `${agent} gave no address`, reply.problem)
    const found = reply.parts.address
    if (found === null || typeof found !== 'object' || Array.isArray(found))
      return failCall(
        context,
        `${agent} has no address`,
        `${agent} has no shipping address of ${email}. Ask the user for one and give it as address.${sayProblems(reply.parts.problems)}`,
      )
    return context.checkpoint({
      summary: `Got the shipping address from ${agent}`,
      result: {
        text: `Ship to: ${showAddress(found)}`,
        address: found,
        user_email: email,
        credentials_agent: agent,
      },
    })
  },
})
