import { z } from 'zod'
import { readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'

/** Searches the memories of the user, beyond those recalled at the start. */
export default defineTool({
  name: 'recall',
  description: 'Looks up what is remembered of the user from earlier talks, by what it has to do with.',
  kinds: ['call'],
  pure: true,
  provenance: 'memory',
  input: z.strictObject({
    query: z.string().min(1).max(2000).describe('What it is about'),
    limit: z.int().min(1).max(50).default(10).describe('The most to return'),
  }),
  reads: [],
  writes: [],
  needs: ['memories'],
  async run(_state, context, signal) {
    const { query, limit } = readCallInput(context)
    const found = await context.memories.search(query, limit, signal)
    const lines = found.map(
      ({ content, kind, created_at, trusted }) =>
        `- ${content} (${kind}, ${created_at.slice(0, 10)}${trusted ? '' : ', not confirmed by the user'})`,
    )
    return context.checkpoint(
      resultDraft(
        found.length > 0 ? `Recalled ${found.length} memories` : 'Nothing remembered fits',
        lines.length > 0 ? lines.join('\n') : 'Nothing is remembered that has to do with this.',
        { memory_ids: found.map(({ id }) => id), found: found.length },
      ),
    )
  },
})
