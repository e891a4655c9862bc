import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import type { OpenMandateTerms } from '../ports/open-mandate-terms.ts'
import { toLimitsText } from '../runs/choose-mandate.ts'

const expiresInMs = 15 * 60_000

const tokenQuestion = {
  question: 'Which card may be charged while you are away?',
  schema: { type: 'string', format: 'payment-token', minLength: 1, maxLength: 200 },
  expires_in_ms: expiresInMs,
  secret: true,
} as const

/**
 * Asks for the token of the instrument, which only the executor can read, and waits until the user signed the limits or refused. Of
 * an instrument at a credentials provider the executor gets the token later.
 */
export default defineTool({
  name: 'request_open_mandate',
  description: 'Asks the user to sign an open mandate',
  kinds: ['step'],
  input: z.object({ mandate_id: z.string(), provider_id: z.string(), terms: z.custom<OpenMandateTerms>() }),
  reads: [],
  writes: [],
  needs: ['payments', 'mandates'],
  async run(_state, context) {
    const { mandate_id, provider_id, terms } = readCallInput(context)
    const providers = await context.payments.listProviders()
    const isCard = providers.find(({ id }) => id === provider_id)?.kind === 'card'
    const token = isCard ? await context.ask({ ...tokenQuestion, options: [], payment_id: mandate_id }) : null
    if (token?.kind === 'expired')
      return context.checkpoint(
        errorDraft('No card was named in time', 'No card was named in time. Nothing was signed.'),
      )
    const { mandates } = context
    const sealed = token && String(token.answer)
    const outcome = await context.wait(mandates.propose(mandate_id, terms, provider_id, sealed))
    const text = String(outcome.message ?? outcome.status)
    if (outcome.status !== 'verified')
      return context.checkpoint(errorDraft(`The open mandate was not signed (${outcome.status})`, text))
    const limits = toLimitsText(await mandates.describe(terms))
    return context.checkpoint(
      resultDraft('The user signed an open mandate', `${text}\n${limits}\nmandate_id: ${mandate_id}`, {
        mandate_id,
      }),
    )
  },
})
