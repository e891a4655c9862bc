import { z } from 'zod'
import { defineTool } from '../graph/tool.ts'
import { memoryKinds } from '../state/memory/kinds.ts'
import { isSaidByUser } from '../state/memory/said.ts'
import { turnActions } from '../state/turn.ts'
import { callInput, resultDraft } from './call-draft.ts'

const refusals: Record<string, string> = {
  empty: 'it says nothing',
  secret: 'it holds a secret, and secrets are never kept',
  command: 'it is an order to a model, not something about the user',
  'small talk': 'it is small talk',
  others: 'it is not about the user',
  passing: 'it holds for a moment only',
  'too long': 'it is longer than 500 characters; say it in one sentence',
  forgotten: 'the user has had something forgotten since; what is to be kept can be said in a new request',
}

/** Keeps one statement about the user for later talks. Named after its call, so that running it again changes nothing. */
export default defineTool({
  name: 'remember',
  description:
    'Keeps one lasting statement about the user (a preference, a fact, or knowledge of his work) for later talks. One short ' +
    'sentence that stands by itself, such as "The user prefers metric units." Never secrets, passing states or facts about others.',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({
    content: z.string().min(1).max(2000),
    kind: z.enum(memoryKinds).exclude(['episode']).optional(),
  }),
  reads: ['prompts', 'chat_history', 'action_history'],
  writes: [],
  async run(state, context, signal) {
    const { content, kind } = callInput(context)
    const own = isSaidByUser(state, content)
    const plan = turnActions(state).findLast(({ result }) => result.calls !== undefined)
    const kept = await context.memories.remember(
      {
        content,
        ...(kind && { kind }),
        origin: own ? 'user' : 'agent',
        trusted: own,
        source_action_ids: plan ? [plan.id] : [],
      },
      `${plan?.id ?? 0} ${context.call?.index ?? 0}`,
      signal,
    )
    if (kept.keep)
      return context.checkpoint(
        resultDraft(`Remembered: ${kept.content}`, `Remembered: ${kept.content}`, {
          memory_id: kept.id,
          superseded: kept.supersedes,
        }),
      )
    if (kept.why === 'duplicate')
      return context.checkpoint(
        resultDraft('This was remembered already', 'This is remembered already.', { memory_id: kept.id }),
      )
    const text = `Not remembered: ${refusals[kept.why] ?? kept.why}.`
    return context.checkpoint(resultDraft(text, text, { memory_id: null }))
  },
})
