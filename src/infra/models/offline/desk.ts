import type { Document } from './documents.ts'
import type { Finding } from './figures.ts'
import type { Gathered } from './gather.ts'
import type { Ledger } from './ledger.ts'
import type { Call, Request } from './read-request.ts'
import type { Language } from './text.ts'

/** One question: what it still needs, or its answer. */

export type Step = {
  calls: readonly Call[]
  finding: Finding
  kind: 'read' | 'search' | 'calculate' | 'ask' | 'none'
}
export type Desk = {
  request: Request
  ledger: Ledger
  language: Language
  /** Reads a file as far as needed; the same answer for the same name within one reply. */
  open(file: string): Gathered
  inline: Document | null
  notes: Set<string>
}

export const done = (finding: Finding): Step => ({ calls: [], finding, kind: 'none' })
export const waiting = (kind: Step['kind'], calls: readonly Call[]): Step => ({
  calls,
  finding: { text: '', empty: true },
  kind,
})
