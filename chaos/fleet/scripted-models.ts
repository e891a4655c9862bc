import { setTimeout as pause } from 'node:timers/promises'
import type { ModelMessage, ToolCallRequest } from '../../src/state/ports/model-messages.ts'
import type { ModelReply, Models } from '../../src/state/ports/models.ts'
import { noUsage } from '../../src/state/token-usage.ts'
import { jobIn, partsOf, requestIn } from './job.ts'

type Said = { text: string; calls: ToolCallRequest[]; delayMs: number }

/** What the planner says next of a job: the call of its next step, or that it is done. */
export const planStep = (messages: readonly ModelMessage[], providerUrl: string): Said => {
  const { name, steps } = jobIn(requestIn(messages))
  const at = messages.filter((message) => message.role === 'tool').length
  const step = steps[at]
  if (step === undefined) return { text: `Done: ${name}.`, calls: [], delayMs: 0 }
  const { kind, ms } = partsOf(step)
  const call = (tool: string, args: object, delayMs = 0): Said => ({
    text: '',
    calls: [{ id: `step_${at}`, name: tool, arguments: JSON.stringify(args) }],
    delayMs,
  })
  const key = `${name}.${at}`
  if (kind === 'write') return call('gate_write', { url: providerUrl, key })
  if (kind === 'look') return call('gate_read', { url: providerUrl, key: `${key}~${ms}` })
  if (kind === 'ask') return call('ask_user', { question: `May ${key} go on?` })
  return call('calculate', { expression: `${at} + 1` }, kind === 'think' ? ms : 0)
}

/** Models in process that play jobs; `providerUrl` is where effects and slow calls go. */
export const scriptedModels = (providerUrl: string): Models => ({
  async call({ role, messages, onText }, signal): Promise<ModelReply> {
    const said =
      role === 'planner'
        ? planStep(messages, providerUrl)
        : { text: '{"is_sufficient":true}', calls: [], delayMs: 0 }
    if (said.delayMs > 0) await pause(said.delayMs, undefined, { signal })
    if (role === 'planner' && said.text) onText?.(said.text, 1)
    const finish = said.calls.length > 0 ? 'tool_calls' : 'stop'
    return {
      text: said.text,
      reasoning: '',
      tool_calls: said.calls,
      finish,
      usage: noUsage,
      model: 'scripted',
    }
  },
  hasModel: () => true,
  describe: () => ({ name: 'scripted', capabilities: ['rules-only'], base_url: null }),
})
