import { z } from 'zod'
import { lastPrepareTool } from '../../graph/default-next.ts'
import { defineTool } from '../../graph/definitions.ts'
import type { RecalledMemory } from '../../state/memory-kinds.ts'
import type { Memory, RuntimeState } from '../../state/runtime-state.ts'
import { findTurnAction, turnPrompt } from '../../state/turn.ts'

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
  reads: ['prompts', 'memory', 'action_history'],
  writes: ['memory'],
  needs: ['memories'],
  skip: (state) => turnPrompt(state).trim() === '',
  hasWork: ({ memories }) => memories.any(),
  async run(state, { checkpoint, memories }, signal) {
    const found = await memories.recall(toQuery(state), maxMemories, signal, turnPrompt(state))
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

/** The goal, where a model has understood the request: its own words may be long, and about more than what is wanted. */
const toQuery = (state: Pick<RuntimeState, 'prompts' | 'action_history'>): string => {
  const goal = findTurnAction(state, lastPrepareTool)?.result.task_goal
  return typeof goal === 'string' && goal.trim() !== '' ? goal : turnPrompt(state)
}

const toMemory = ({ origin: _, trusted, ...memory }: RecalledMemory): Memory => ({
  ...memory,
  ...(trusted && { confirmed: true }),
})
