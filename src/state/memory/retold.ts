import { talkIn } from './earlier-talk.ts'
import { holdsWords, wordsOf } from './words.ts'

/** What is written down of a session, and the ids of the memories and earlier talks that it was shown. */
export type WrittenTalk = { session_id: string; summary: string; shown: readonly string[] }

/** What goes for good. */
export type Gone = {
  memories: readonly { id: string; content: string }[]
  /** Of the profile, which every session of the user was shown. */
  values: readonly string[]
  /** Sessions that taught the memories. */
  teachers: readonly string[]
  /** The session that is deleted. */
  talk?: { session_id: string; summary: string }
}

/**
 * The sessions whose summaries may tell on what is gone: those that taught it, and those that were shown it, or a talk that
 * tells it, and say a telling word of it. Else later sessions would be shown it by them.
 */
export const retellers = (talks: readonly WrittenTalk[], gone: Gone): string[] => {
  const { memories, values, teachers, talk } = gone
  const words = (texts: readonly string[]) => new Set(texts.flatMap(tellingWords))
  const ofMemories = words(memories.map(({ content }) => content))
  /** By memory and session: the words by which it is told. */
  const told = new Map<string, ReadonlySet<string>>([
    ...memories.map(({ id, content }) => [id, words([content])] as const),
    ...teachers.map((session_id) => [session_id, ofMemories] as const),
    ...(talk ? [[talk.session_id, words([talk.summary])] as const] : []),
  ])
  const wordsTold = ({ summary, shown }: WrittenTalk): string[] => {
    const said = words([summary])
    const telling = shown.flatMap((id) => [...(told.get(talkIn(id) ?? id) ?? [])])
    const stated = values.filter((value) => holdsWords(summary, value))
    return [
      ...telling.filter((word) => said.has(word)),
      ...stated.flatMap((value) => [value, ...wordsOf(value)]),
    ]
  }
  // one that tells it may have been shown to another
  for (let before = -1; told.size !== before; ) {
    before = told.size
    for (const one of talks.filter(({ session_id }) => !told.has(session_id))) {
      const telling = wordsTold(one)
      if (telling.length > 0) told.set(one.session_id, new Set(telling))
    }
  }
  return talks.map(({ session_id }) => session_id).filter((id) => told.has(id))
}

/** Whether a summary says a telling word of what is gone, so that it matters what its session was shown. */
export const mayTell = ({ summary }: Pick<WrittenTalk, 'summary'>, { memories, talk }: Gone): boolean =>
  sharesWord(summary, [...memories.map(({ content }) => content), ...(talk ? [talk.summary] : [])])

/** Whether a text says a telling word of one of others. */
export const sharesWord = (text: string, others: readonly string[]): boolean => {
  const words = new Set(others.flatMap(tellingWords))
  return words.size > 0 && tellingWords(text).some((word) => words.has(word))
}

/** Small numbers say nothing: lines of a summary begin with them. */
const tellingWords = (text: string): string[] => wordsOf(text).filter((word) => !/^\d{1,2}$/.test(word))
