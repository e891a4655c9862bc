import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { contentHash } from '../../src/state/text/content-hash.ts'

/** The id of the last action of a state; 0 when it has none. */
export const lastIdOf = (state: RuntimeState): number => state.action_history.flat().at(-1)?.id ?? 0

/** Two states have the same digest when they hold the same, in whatever order their keys stand. */
export const digestOf = (state: RuntimeState): string => contentHash(state)
