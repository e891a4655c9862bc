import type { ProvenanceLabel } from './provenance.ts'
import { type Memory, memorySchema } from './runtime-state.ts'

/** What a memory can be: a preference, a fact, knowledge or an episode. */
export const memoryKinds = memorySchema.shape.kind.options
/** One of `memoryKinds`. */
export type MemoryKind = (typeof memoryKinds)[number]

/** A memory that was found, with its label: words that are not trusted are data in a prompt, never instructions. */
export type RecalledMemory = Memory & ProvenanceLabel

/** A statement to be remembered. `subject`: what a user has only one of (such as a name), where the writer knows it. */
export type Note = ProvenanceLabel & {
  content: string
  kind?: MemoryKind
  subject?: string | null
  source_action_ids: readonly number[]
}
