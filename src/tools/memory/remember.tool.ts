import { z } from 'zod'
import { readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { memoryKinds } from '../../state/memory-kinds.ts'
import { readActionLabel } from '../../state/provenance.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { turnActions } from '../../state/turn.ts'

/** The user's prompts, their messages in the conversation, and their answers to questions of this turn. */
const listUserTexts = (
  state: Pick<RuntimeState, 'prompts' | 'chat_history' | 'action_history'>,
): string[] => {
  const messages = state.chat_history.filter(({ role }) => role === 'user').map(({ content }) => content)
  const answers = turnActions(state).flatMap((action) => {
    const { text } = action.result
    return readActionLabel(action).origin === 'user' && typeof text === 'string' ? [text] : []
  })
  return [...new Set([...state.prompts, ...messages, ...answers])]
}

const refusals: Record<string, string> = {
  empty: 'it says nothing',
  secret: 'it holds a secret, and secrets are never kept',
  others: 'it is not about the user',
  unstated:
    'it is no sentence of the user in which they speak of themselves. Copy such a sentence from their message, whole and ' +
    'exactly. What else they say of themselves is learned when the run has ended',
  'too long': 'it is longer than 500 characters; say it in one sentence',
  forgotten: 'the user has had something forgotten since; what is to be kept can be said in a new request',
}

/** Stores one sentence of the user about themselves for later sessions, named after its call: a repetition changes nothing. */
export default defineTool({
  name: 'remember',
  description:
    'Keeps one lasting sentence of the user about themselves (a preference, a fact, or knowledge of their work) for later ' +
    'talks, copied exactly from their message. Never secrets, passing states or facts about others.',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({
    content: z.string().min(1).max(2000).describe("The user's sentence, copied exactly"),
    kind: z.enum(memoryKinds).exclude(['episode']).optional().describe('Its kind'),
  }),
  reads: ['prompts', 'chat_history', 'action_history'],
  writes: [],
  needs: ['memories'],
  async run(state, context, signal) {
    const { content, kind } = readCallInput(context)
    const plan = turnActions(state).findLast(({ result }) => result.calls !== undefined)
    const kept = await context.memories.remember(
      {
        content,
        ...(kind && { kind }),
        said: listUserTexts(state),
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
