import { listEarlier, listReplies, readRewards, type TrajectorySource } from './turn-replies.ts'

/**
 * A run as one line of a file for fine-tuning chat models by supervision: what came before (earlier answers have weight 0), the request,
 * each reply with its calls, their results, and the answer. What a reward can be made of is beside `messages` and `tools`.
 */
export const renderOpenAiExample = (source: TrajectorySource): string => {
  const { run, tools } = source
  const replies = listReplies(source).filter(({ calls }) => calls.length > 0)
  const messages = [
    ...listEarlier(source).map(({ role, content }) => {
      return role === 'assistant' ? { role, content, weight: 0 } : { role, content }
    }),
    { role: 'user', content: run.prompt },
    ...replies.flatMap(({ action: { preparation }, calls }) => [
      {
        role: 'assistant',
        ...(preparation !== '' && { content: preparation }),
        tool_calls: calls.map(({ id, name, args }) => {
          return { id, type: 'function', function: { name, arguments: JSON.stringify(args) } }
        }),
      },
      // the format wants a result of each call
      ...calls.map(({ id, result }) => {
        return { role: 'tool', tool_call_id: id, content: result ?? '[no result]' }
      }),
    ]),
    ...(run.answer === null ? [] : [{ role: 'assistant', content: run.answer }]),
  ]
  const relevance = replies
    .flatMap(({ calls }) => calls)
    .flatMap(({ id, answer }) => (answer ? { tool_call_id: id, relevance: answer.relevance } : []))
  return `${JSON.stringify({ messages, tools, run_id: run.id, relevance, ...readRewards(source) })}\n`
}
