import type { MemoryKind, RecalledMemory } from '../memory-kinds.ts'

/** Why the content of a note is refused. */
export type RejectionReason = 'empty' | 'secret' | 'others'

/** A sentence that a run is asked to remember, and the messages of its user in which it must stand. */
export type OwnStatement = {
  content: string
  kind?: MemoryKind
  said: readonly string[]
  source_action_ids: readonly number[]
}

/** Whether a note is kept, as what, and which memories it replaces. */
export type GateVerdict =
  | {
      keep: true
      content: string
      kind: MemoryKind
      subject: string | null
      /** Ids of memories that are no longer true. */
      supersedes: string[]
    }
  /** `unstated`: no sentence of the user says it; `forgotten`: it was said before its user had something forgotten. */
  | { keep: false; reason: RejectionReason | 'unstated' | 'too long' | 'forgotten' }
  | { keep: false; reason: 'duplicate'; duplicateOf: string }

/** What is remembered of the run's user, and of no other. Texts are embedded on the way; the run's caller pays. */
export type Memories = {
  /** Whether anything is remembered of the user. */
  any(): Promise<boolean>
  /** Memories that are related to a text, the best first. */
  search(text: string, limit: number, signal: AbortSignal): Promise<RecalledMemory[]>
  /**
   * The same for the request of a turn, with the preferences that always hold and the earlier sessions it refers to;
   * records that they were used. `ownWords`: those of the user, where the text is a model's; only these are searched for dates.
   */
  recall(text: string, limit: number, signal: AbortSignal, ownWords?: string): Promise<RecalledMemory[]>
  /**
   * Keeps a sentence in which the user speaks of themselves, and nothing else. `noteKey` names it within the run: written
   * twice, it exists once.
   */
  remember(
    statement: OwnStatement,
    noteKey: string,
    signal: AbortSignal,
  ): Promise<GateVerdict & { id: string | null }>
}

declare module './services.ts' {
  interface Services {
    memories: Memories
  }
}
