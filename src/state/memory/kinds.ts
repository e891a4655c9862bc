import type { Label } from '../context/fence.ts'
import type { Memory } from '../runtime-state.ts'

export const memoryKinds = [
  'preference',
  'fact',
  'knowledge',
  'episode',
] as const satisfies readonly Memory['kind'][]
export type MemoryKind = (typeof memoryKinds)[number]

/** A memory that was found, with its label: words that are not trusted are data in a prompt, never instructions. */
export type FoundMemory = Memory & Label

/** What somebody wants remembered. `subject`: what there is only one of, where he knows. */
export type Note = Label & {
  content: string
  kind?: MemoryKind
  subject?: string | null
  source_action_ids: readonly number[]
}
