import { readFileSync } from 'node:fs'
import { listContentWords } from '../../src/features/user-memory/policy/turn-text.ts'

type Session = { id: string; prompt: string; answer: string }

/** Sessions of one user, questions about them, and questions about nothing that was said. */
export type RecallSet = {
  sessions: readonly Session[]
  questions: readonly { text: string; session: string }[]
  unrelated: readonly string[]
}

const linesOf = (block: string, mark: string): string[] =>
  block
    .split('\n')
    .filter((line) => line.startsWith(mark))
    .map((line) => line.slice(mark.length))

/** Reads `bench/data/recall.txt`. Throws where a question has a content word of its session. */
export const readRecallSet = (): RecallSet => {
  const blocks = readFileSync('bench/data/recall.txt', 'utf8').split('\n\n')
  const set = {
    sessions: [] as Session[],
    questions: [] as { text: string; session: string }[],
    unrelated: [] as string[],
  }
  for (const block of blocks) {
    set.unrelated.push(...linesOf(block, 'N: '))
    const [prompt] = linesOf(block, 'P: ')
    if (prompt === undefined) continue
    const session = { id: `session-${set.sessions.length}`, prompt, answer: linesOf(block, 'A: ').join(' ') }
    set.sessions.push(session)
    const words = new Set(listContentWords(`${session.prompt} ${session.answer}`))
    for (const text of linesOf(block, 'Q: ')) {
      const shared = listContentWords(text).filter((word) => words.has(word))
      if (shared.length > 0) throw new Error(`"${text}" shares "${shared.join(', ')}" with its session`)
      set.questions.push({ text, session: session.id })
    }
  }
  return set
}
