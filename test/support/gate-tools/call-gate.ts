import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'
import { MasonError } from '../../../src/state/errors.ts'

/** Where a gate tool knocks, and as what. `url` is the test's own server. */
export const gateInput = z.strictObject({ url: z.string(), key: z.string() })

const replySchema = z.object({ text: z.string().optional(), error: z.string().optional() })

/** Who knocks, and under which idempotency key if the knock changes something. */
type Knocker = { tool: string; run: string; effect?: string }

/** Waits until the test's gate lets it through and gives its text; the gate's error is thrown. */
export const callGate = async (
  { url, key }: z.infer<typeof gateInput>,
  knocker: Knocker,
  signal: AbortSignal,
): Promise<string> => {
  const body = JSON.stringify({ ...knocker, key, pid: process.pid })
  const response = await fetch(url, { method: 'POST', body, signal })
  const reply = replySchema.parse(await response.json())
  if (reply.error !== undefined) throw new MasonError('node_failed', reply.error)
  return reply.text ?? ''
}

/** A pure tool that does nothing but knock. */
export const createReadTool = (name: string) =>
  defineTool({
    name,
    description: 'Knocks at the gate of a test',
    kinds: ['call'],
    pure: true,
    input: gateInput,
    reads: [],
    writes: [],
    async run(_state, context, signal) {
      const input = readCallInput(context)
      const text = await callGate(input, { tool: name, run: context.run.run_id }, signal)
      return context.checkpoint({ summary: `Passed ${input.key}`, result: { text } })
    },
  })
