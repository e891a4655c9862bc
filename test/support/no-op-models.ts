import type { ModelReply, Models } from '../../src/state/ports/models.ts'
import { noUsage } from '../../src/state/token-usage.ts'

export type NoOpOptions = {
  /** How often the planner calls `calculate` before it finishes. */
  rounds?: number
  /** Said by the planner beside each call, to give its actions a size. */
  saying?: string
  /** What the planner calls in one reply, where it is not `calculate`. */
  toCalls?(round: number): { name: string; arguments: string }[]
}

/**
 * A model that takes no time: the planner calls `calculate` once, or `rounds` times, and finishes. A run of one round
 * appends 8 actions: load-session, user-context, planner, calculate, reflection, planner, answer, end.
 */
export const noOpModels = ({
  rounds = 1,
  saying = '',
  toCalls = (round) => [{ name: 'calculate', arguments: `{"expression":"${round} + 1"}` }],
}: NoOpOptions = {}): Models => ({
  async call({ role, messages }): Promise<ModelReply> {
    const reply = {
      text: '',
      reasoning: '',
      finish: 'stop' as const,
      usage: noUsage,
      model: 'no-op',
      tool_calls: [],
    }
    if (role !== 'planner') return { ...reply, text: '{}' }
    const last = messages.findLast((message) => message.role === 'tool')
    const done = last?.role === 'tool' ? Number.parseInt(last.tool_call_id.slice('round_'.length), 10) : 0
    if (done >= rounds) return { ...reply, text: 'Done.' }
    const round = done + 1
    const tool_calls = toCalls(round).map((call, at) => ({ id: `round_${round}_${at}`, ...call }))
    return { ...reply, text: saying, finish: 'tool_calls', tool_calls }
  },
  hasModel: () => true,
  // so much that no run is ever summed up
  window: () => ({ context: 1_000_000_000, output: 4096 }),
  describe: () => ({ name: 'no-op', capabilities: ['rules-only'], base_url: null }),
})
