import { z } from 'zod'
import { readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { memoryKinds } from '../../state/memory-kinds.ts'
import { turnActions } from '../../state/turn.ts'
import { isStatedByUser } from '../../state/user-statements.ts'

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

/** Stores one statement about the user for later sessions, named after its call: a repetition changes nothing. */
export default defineTool({
  name: 'remember',
  description:
    'Keeps one lasting statement about the user (a preference, a fact, or knowledge of their work) for later talks. One short ' +
    'sentence that stands by itself, such as "The user prefers metric units." Never secrets, passing states or facts about others.',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({
    content: z.string().min(1).max(2000).describe('The sentence, in the language of the user'),
    kind: z.enum(memoryKinds).exclude(['episode']).optional().describe('Its kind'),
  }),
  reads: ['prompts', 'chat_history', 'action_history'],
  writes: [],
  needs: ['memories'],
  async run(state, context, signal) {
    const { content, kind } = readCallInput(context)
    const own = isStatedByUser(state, content)
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
    if (kept.keep) {
      const text = `Remembered: ${kept.content}`
      const more = { memory_id: kept.id, superseded: kept.supersedes }
      return context.checkpoint(resultDraft(text, text, more))
    }
    if (kept.reason === 'duplicate')
      return context.checkpoint(
        resultDraft('This was remembered already', 'This is remembered already.', { memory_id: kept.id }),
      )
    const text = `Not remembered: ${refusals[kept.reason] ?? kept.reason}.`
    return context.checkpoint(resultDraft(text, text, { memory_id: null }))
  },
})
