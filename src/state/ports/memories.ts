import type { MemoryKind, Note, RecalledMemory } from '../memory-kinds.ts'

/** Why the content of a note is refused. */
export type RejectionReason = 'empty' | 'secret' | 'command' | 'small talk' | 'others' | 'passing'

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
  /** `forgotten`: it was said before its user had something forgotten. */
  | { keep: false; reason: RejectionReason | 'too long' | 'forgotten' }
  | { keep: false; reason: 'duplicate'; duplicateOf: string }

/** What is remembered of the run's user, and of no other. Texts are embedded on the way; the run's caller pays. */
export type Memories = {
  /** Whether anything is remembered of the user. */
  any(): Promise<boolean>
  /** Memories that are related to a text, the best first. */
  search(text: string, limit: number, signal: AbortSignal): Promise<RecalledMemory[]>
  /**
   * The same for the request of a turn, with the preferences that always hold and the earlier sessions it refers to;
   * records that they were used.
   */
  recall(text: string, limit: number, signal: AbortSignal): Promise<RecalledMemory[]>
  /** Writes through the gate. `noteKey` names the note within the run: written twice, it exists once. */
  remember(note: Note, noteKey: string, signal: AbortSignal): Promise<GateVerdict & { id: string | null }>
}

declare module './services.ts' {
  interface Services {
    memories: Memories
  }
}
