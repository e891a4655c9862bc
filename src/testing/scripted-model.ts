import { type ModelRequest, type ModelRole, type Models, rulesOnly } from '../state/ports/models.ts'
import { noUsage } from '../state/token-usage.ts'

/**
 * What a scripted model replies: a text, or calls of tools.
 *
 * @example
 * ```ts
 * import type { ScriptedReply } from 'mason-runtime/testing'
 *
 * const reply: ScriptedReply = { calls: [['refund_order', { order_id: '7', amount: 12.5 }]] }
 * ```
 */
export type ScriptedReply = string | { text?: string; calls: readonly [tool: string, args: object][] }

/**
 * Replies by role, in order, the last one again and again; or what gives the reply to the nth request of a role (from 1).
 *
 * @example
 * ```ts
 * import type { Script } from 'mason-runtime/testing'
 *
 * const script: Script = (request, nth) => (request.role === 'planner' && nth === 1 ? 'Done.' : undefined)
 * ```
 */
export type Script =
  | Partial<Record<ModelRole, readonly ScriptedReply[]>>
  | ((request: ModelRequest, nth: number) => ScriptedReply | undefined)

/**
 * A model without a server for tests. The roles that the script leaves out follow rules, as with the offline model.
 *
 * @example
 * ```ts
 * import { scriptedModel } from 'mason-runtime/testing'
 *
 * const model = scriptedModel({
 *   planner: [{ calls: [['refund_order', { order_id: '7', amount: 12.5 }]] }, 'Refunded.'],
 * })
 * console.log(model.requests.length)
 * ```
 */
export const scriptedModel = (script: Script): Models & { requests: ModelRequest[] } => {
  const requests: ModelRequest[] = []
  const findReply = (request: ModelRequest, nth: number): ScriptedReply | undefined => {
    if (typeof script === 'function') return script(request, nth)
    const replies = script[request.role] ?? []
    return replies[Math.min(nth, replies.length) - 1]
  }
  return {
    requests,
    async call(request, signal) {
      signal.throwIfAborted()
      requests.push(request)
      const nth = requests.filter(({ role }) => role === request.role).length
      const found = findReply(request, nth) ?? (request.role === 'planner' ? 'Done.' : '{}')
      const { text = '', calls = [] } = typeof found === 'string' ? { text: found } : found
      return {
        text,
        reasoning: '',
        tool_calls: calls.map(([name, args], at) => ({
          id: `call_${nth}_${at}`,
          name,
          arguments: JSON.stringify(args),
        })),
        finish: calls.length > 0 ? 'tool_calls' : 'stop',
        usage: noUsage,
        model: 'scripted',
      }
    },
    hasModel: () => true,
    // so much that no history is ever summed up
    window: () => ({ context: 1_000_000_000, output: 4096 }),
    describe: () => ({ name: 'scripted', capabilities: [rulesOnly], base_url: null }),
  }
}
