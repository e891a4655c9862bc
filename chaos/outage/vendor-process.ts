import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import { startFakeModel } from '../../test/support/fake-model/fake-model.ts'
import { planStep } from '../fleet/scripted-models.ts'

/** A vendor of real shape that plays jobs, until it is killed. Its argument: {port, delayMs}. */
const { port, delayMs } = JSON.parse(process.argv[2] ?? '{}') as { port: number; delayMs: number }

const model = await startFakeModel({
  port,
  script: ({ role, messages }) => {
    if (role !== 'planner') return { text: '{}' }
    const { text, calls } = planStep(messages as ModelMessage[], '')
    return {
      text,
      delayMs,
      tool_calls: calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) })),
    }
  },
})
process.once('disconnect', () => process.exit(1))
process.send?.({ event: 'ready', port: model.port })
