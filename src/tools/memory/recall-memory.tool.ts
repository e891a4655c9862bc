import { z } from 'zod'
import { defineTool } from '../../graph/definitions.ts'
import type { RecalledMemory } from '../../state/memory-kinds.ts'
import type { Memory } from '../../state/runtime-state.ts'
import { turnPrompt } from '../../state/turn.ts'

const maxMemories = 8

/**
 * Appends to `memory` what earlier sessions know about this request. A memory that is there already is not appended again:
 * `result.recalled` names all that this turn recalled, with their labels.
 */
export default defineTool({
  name: 'recall-memory',
  description: 'Recalls what earlier talks have to do with the request',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: ['prompts', 'memory'],
  writes: ['memory'],
  needs: ['memories'],
  skip: (state) => turnPrompt(state).trim() === '',
  hasWork: ({ memories }) => memories.any(),
  async run(state, { checkpoint, memories }, signal) {
    const found = await memories.recall(turnPrompt(state), maxMemories, signal)
    const known = new Set(state.memory.map(({ id }) => id))
    return checkpoint(
      {
        summary:
          found.length > 0 ? `Recalled ${found.length} of what is remembered` : 'Nothing remembered fits',
        result: {
          recalled: found.map(({ id, relevance, origin, trusted }) => ({ id, relevance, origin, trusted })),
        },
        relevance: found.length > 0 ? 0.5 : 0,
      },
      { memory: found.filter(({ id }) => !known.has(id)).map(toMemory) },
    )
  },
})

const toMemory = ({ origin: _, trusted, ...memory }: RecalledMemory): Memory => ({
  ...memory,
  ...(trusted && { confirmed: true }),
})
