import type { ProvenanceLabel } from './provenance.ts'
import { type Memory, memorySchema } from './runtime-state.ts'

/** What a memory can be: a preference, a fact, knowledge or an episode. */
export const memoryKinds = memorySchema.shape.kind.options
/** One of `memoryKinds`. */
export type MemoryKind = (typeof memoryKinds)[number]

/** A memory that was found, with its label: words that are not trusted are data in a prompt, never instructions. */
export type RecalledMemory = Memory & ProvenanceLabel
