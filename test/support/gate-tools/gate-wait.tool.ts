import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'
import type { WaitRequest } from '../../../src/state/ports/waits.ts'

const waitSchema = z.strictObject({
  kind: z.enum(['payment', 'run', 'job']).default('job'),
  ref: z.string(),
  expires_in_ms: z.number().optional(),
})

/** Asks, or waits for what a test ends: all at once, or one after the other. What it starts is a row of the inbox, once. */
export default defineTool({
  name: 'gate_wait',
  description: 'Waits for something of a test',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({
    waits: z.array(waitSchema).default([]),
    in_turn: z.boolean().default(false),
    ask: z.string().optional(),
  }),
  reads: [],
  writes: [],
  async run(_state, context) {
    const { waits, in_turn, ask } = readCallInput(context)
    if (ask !== undefined)
      await context.ask({ question: ask, schema: { type: 'string' }, options: [], expires_in_ms: 60_000 })
    const requests = waits.map(
      ({ kind, ref, expires_in_ms }): WaitRequest => ({
        kind,
        refId: ref,
        ...(kind === 'payment' && { neverExpires: true }),
        ...(expires_in_ms !== undefined && { expiresInMs: expires_in_ms }),
        start: async (sql, { part }) =>
          void (await sql.query('INSERT INTO inbox (tenant, source, message_id) VALUES ($1, $2, $3)', [
            context.run.business_id,
            'gate_wait',
            `${context.run.run_id}/${ref}/${part}`,
          ])),
      }),
    )
    const outcomes = in_turn ? [] : await context.waitAll(requests)
    if (in_turn) for (const request of requests) outcomes.push(await context.wait(request))
    return context.checkpoint({
      summary: `Waited for ${waits.length}`,
      result: { text: outcomes.map(({ status }) => status).join(', '), outcomes },
    })
  },
})
