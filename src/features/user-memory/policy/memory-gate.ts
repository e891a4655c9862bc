import type { MemoryKind } from '../../../state/memory-kinds.ts'
import type { GateVerdict } from '../../../state/ports/memories.ts'
import { extractWords, normalizeText } from '../../../state/text/words.ts'
import type { Evidence } from './evidence.ts'
import { findRejectionReason } from './rejection-rules.ts'

/** A statement to be remembered. `subject`: what a user has only one of (such as a name), where the writer knows it. */
export type Note = {
  content: string
  kind?: MemoryKind
  subject?: string | null
  evidence: Evidence
  /** Ids of memories that it makes untrue. */
  replaces?: readonly string[]
  /** Whether it asks for something, and so has no subject. */
  isInstruction?: boolean
  source_action_ids: readonly number[]
}

/** A memory as the gate compares it. `trusted`: its evidence was checked. */
export type KnownMemory = { id: string; content: string; trusted: boolean }

const maxChars = 500

/**
 * Refuses a note by rules, or decides which memories it replaces. `similar`: memories of the same user that a search for it
 * returned; `sameSubject`: those about its subject. A repeated memory without checked evidence is replaced.
 */
export const judgeNote = (
  {
    content: text,
    kind = 'fact',
    subject = null,
    evidence,
    replaces = [],
    isInstruction,
  }: Omit<Note, 'source_action_ids'>,
  similar: readonly KnownMemory[],
  sameSubject: readonly KnownMemory[] = [],
): GateVerdict => {
  const content = text.trim().replace(/\s+/g, ' ')
  if (content.length > maxChars) return { keep: false, reason: 'too long' }
  const reason =
    findRejectionReason(content, isInstruction ? 'instruction' : 'statement') ??
    (findRejectionReason(evidence, 'instruction') === 'secret' ? 'secret' : null)
  if (reason) return { keep: false, reason }
  const repeated = [...similar, ...sameSubject].filter((one) => saysTheSame(one.content, content))
  const duplicate = repeated.find(({ trusted }) => trusted)
  if (duplicate) return { keep: false, reason: 'duplicate', duplicateOf: duplicate.id }
  const supersedes = new Set([...repeated, ...sameSubject].map(({ id }) => id))
  return { keep: true, content, kind, subject, supersedes: [...supersedes, ...replaces] }
}

const extractFigures = (text: string): string => (normalizeText(text).match(/\d+/g) ?? []).join()

/** The same words, whichever number and person they are in, and the same figures. */
const saysTheSame = (one: string, other: string): boolean => {
  if (extractFigures(one) !== extractFigures(other)) return false
  const [a, b] = [new Set(extractWords(one)), new Set(extractWords(other))]
  return a.size === b.size && a.size > 0 && [...a].every((word) => b.has(word))
}
