import { defineTool } from '../../../src/graph/tool.ts'
import { callInput } from '../../../src/tools/call-draft.ts'
import { callGate, gateInput } from './call-gate.ts'

export default defineTool({
  name: 'gate_read',
  description: 'Knocks at the gate of a test',
  kinds: ['call'],
  pure: true,
  input: gateInput,
  reads: [],
  writes: [],
  async run(_state, context, signal) {
    const input = callInput(context)
    const text = await callGate(input, { tool: 'gate_read', run: context.run.run_id }, signal)
    return context.checkpoint({ summary: `Passed ${input.key}`, result: { text } })
  },
})
