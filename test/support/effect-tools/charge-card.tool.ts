import { z } from 'zod'
import { readCallInput, resultDraft } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'
import { EffectRefusedError } from '../../../src/state/errors.ts'

const kinds = ['keyed', 'queryable', 'manual'] as const

/** Charges a card that has expired: its provider says so, or answers in a way that leaves it unknown. */
export default defineTool({
  name: 'charge_card',
  description: 'Charges a card.',
  kinds: ['call'],
  input: z.strictObject({ kind: z.enum(kinds), refuses: z.boolean() }),
  reads: [],
  writes: [],
  async run(_state, context) {
    const { kind, refuses } = readCallInput(context)
    const response = await context.effect({
      class: kind,
      windowMs: 60_000,
      request: 'charge 5',
      async send() {
        if (refuses) throw new EffectRefusedError('card expired')
        throw new Error('HTTP 400 card expired')
      },
      lookup: async () => null,
    })
    return context.checkpoint(resultDraft('Charged the card', response))
  },
})
