import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'
import { callGate, gateInput } from './call-gate.ts'

/** Changes something outside: the gate's ledger, under the key of the effect. */
export default defineTool({
  name: 'gate_write',
  description: 'Knocks at the gate of a test',
  kinds: ['call'],
  input: gateInput,
  reads: [],
  writes: [],
  async run(_state, context) {
    const input = readCallInput(context)
    const text = await context.effect({
      class: 'keyed',
      windowMs: 3_600_000,
      request: JSON.stringify(input),
      send: (request, effect, _lastLook, signal) =>
        callGate(JSON.parse(request), { tool: 'gate_write', run: context.run.run_id, effect }, signal),
    })
    // a refusal is an answer of the provider's: it is known that nothing was done
    const refusal = /^refused: (.*)$/.exec(text)?.[1]
    if (refusal !== undefined) throw new Error(refusal)
    return context.checkpoint({ summary: `Passed ${input.key}`, result: { text } })
  },
})
