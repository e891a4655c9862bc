import { readMasonVersion } from '../../infra/lib/package-path.ts'
import type { ReadonlyAction } from '../../state/turn.ts'
import {
  listEarlier,
  listReplies,
  readRewards,
  type TrajectorySource,
  type TurnReply,
} from './turn-replies.ts'

/**
 * A run in the Agent Trajectory Interchange Format 1.7 (Harbor's RFC 1): what came before as copied context, the request, and the turn's
 * actions. A reply of the planner is a step of the agent, with its calls and what they returned; other nodes are steps of the system.
 */
export const renderAtif = (source: TrajectorySource): string => {
  const { run, state, tools } = source
  const replies = new Map(listReplies(source).map((reply) => [reply.action, reply]))
  const answers = new Set([...replies.values()].flatMap(({ calls }) => calls.map(({ answer }) => answer)))
  const last = [...replies.keys()].at(-1)?.result
  const { usage, ...outcome } = readRewards(source)
  const usd = outcome.cost.find(({ currency }) => currency === 'USD')
  const steps = [
    ...listEarlier(source).map(({ role, content: message }) => {
      return { source: role === 'assistant' ? 'agent' : role, message, is_copied_context: true }
    }),
    { source: 'user', message: run.prompt, timestamp: run.created_at },
    ...(state.action_history[run.turn - 1] ?? [])
      .filter((action) => !answers.has(action))
      .map((action) => {
        const reply = replies.get(action)
        if (reply) return renderReply(reply)
        return { source: 'system', message: action.summary, extra: toExtra(action) }
      }),
    ...(run.answer === null || last?.draft === run.answer ? [] : [{ source: 'agent', message: run.answer }]),
  ].map((step, index) => ({ step_id: index + 1, ...step }))
  return JSON.stringify({
    schema_version: 'ATIF-v1.7',
    session_id: run.session_id,
    trajectory_id: run.id,
    agent: {
      name: 'mason',
      version: readMasonVersion(),
      model_name: last?.model,
      tool_definitions: tools,
    },
    steps,
    final_metrics: {
      total_prompt_tokens: usage.prompt_tokens,
      total_completion_tokens: usage.completion_tokens,
      total_cost_usd: usd?.cost,
      total_steps: steps.length,
      extra: outcome,
    },
  })
}

// a member without a value is not written
const renderReply = ({ action, calls }: TurnReply) => {
  const { draft, model, reasoning, exchange } = action.result
  const { prompt_tokens, completion_tokens } = action.usage
  const results = calls.flatMap(({ id, result, answer }) => {
    const extra = answer && toExtra(answer)
    return result === null ? [] : { source_call_id: id, content: result, extra }
  })
  return {
    source: 'agent',
    message: draft ?? action.preparation,
    model_name: model,
    reasoning_content: reasoning,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, args }) => {
        return { tool_call_id: id, function_name: name, arguments: args }
      }),
      observation: { results },
    }),
    metrics: { prompt_tokens, completion_tokens },
    extra: { ...toExtra(action), exchange },
  }
}

const toExtra = ({ id, node, relevance, usage, result: { is_error } }: ReadonlyAction) => {
  return { action_id: id, node, relevance, usage: usage.total_tokens > 0 ? usage : undefined, is_error }
}
