import { containsWords, extractWords } from '../../../state/text/words.ts'
import { parseSessionMemoryId } from './turn-ids.ts'

/** The summary of a session, and the ids of the memories and earlier sessions that it recalled. */
export type SessionSummary = { session_id: string; summary: string; recalledIds: readonly string[] }

/** What is being forgotten for good. */
export type ForgottenContent = {
  memories: readonly { id: string; content: string }[]
  /** Values of the profile, which every session of the user got. */
  profileValues: readonly string[]
  /** Sessions that taught the memories. */
  teachingSessions: readonly string[]
  /** The session that is being deleted. */
  deletedSession?: { session_id: string; summary: string }
}

/**
 * The sessions whose summaries may repeat forgotten content: those that taught it, and those that recalled it, or another
 * leaking session, and have a distinctive word of it. Else later sessions would get it from these summaries.
 */
export const findLeakingSessions = (
  summaries: readonly SessionSummary[],
  forgotten: ForgottenContent,
): string[] => {
  const { memories, profileValues, teachingSessions, deletedSession } = forgotten
  const memoryWords = distinctiveWords(memories.map(({ content }) => content))
  /** By memory or session: the words that reveal it. */
  const leaks = new Map<string, ReadonlySet<string>>([
    ...memories.map(({ id, content }) => [id, distinctiveWords([content])] as const),
    ...teachingSessions.map((session_id) => [session_id, memoryWords] as const),
    ...(deletedSession
      ? [[deletedSession.session_id, distinctiveWords([deletedSession.summary])] as const]
      : []),
  ])
  const findLeakedWords = ({ summary, recalledIds }: SessionSummary): string[] => {
    const summaryWords = distinctiveWords([summary])
    const recalledWords = recalledIds.flatMap((id) => [
      ...(leaks.get(parseSessionMemoryId(id)?.session_id ?? id) ?? []),
    ])
    const values = profileValues.filter((value) => containsWords(summary, value))
    return [
      ...recalledWords.filter((word) => summaryWords.has(word)),
      ...values.flatMap((value) => [value, ...extractWords(value)]),
    ]
  }
  // a leaking session may itself have been recalled by another
  for (let before = -1; leaks.size !== before; ) {
    before = leaks.size
    for (const one of summaries.filter(({ session_id }) => !leaks.has(session_id))) {
      const words = findLeakedWords(one)
      if (words.length > 0) leaks.set(one.session_id, new Set(words))
    }
  }
  return summaries.map(({ session_id }) => session_id).filter((id) => leaks.has(id))
}

/** Whether a summary has a distinctive word of forgotten content, so that it matters what its session recalled. */
export const mayLeak = (
  { summary }: Pick<SessionSummary, 'summary'>,
  { memories, deletedSession }: ForgottenContent,
): boolean =>
  sharesDistinctiveWord(summary, [
    ...memories.map(({ content }) => content),
    ...(deletedSession ? [deletedSession.summary] : []),
  ])

/** Whether a text has a distinctive word of one of `texts`. */
export const sharesDistinctiveWord = (text: string, texts: readonly string[]): boolean => {
  const words = distinctiveWords(texts)
  return words.size > 0 && [...distinctiveWords([text])].some((word) => words.has(word))
}

/** The words by which a text may repeat forgotten content. */
export const listForgottenWords = ({
  memories,
  profileValues,
  deletedSession,
}: Omit<ForgottenContent, 'teachingSessions'>): string[] => [
  ...distinctiveWords([
    ...memories.map(({ content }) => content),
    ...profileValues,
    ...(deletedSession ? [deletedSession.summary] : []),
  ]),
]

/** Whether a text has half of the distinctive words of one of these memories. */
export const repeatsMemory = (text: string, contents: readonly string[]): boolean => {
  const words = distinctiveWords([text])
  return contents.some((content) => {
    const own = [...distinctiveWords([content])]
    return own.length > 0 && own.filter((word) => words.has(word)).length * 2 >= own.length
  })
}

/** All words except small numbers, with which the lines of a summary begin. */
const distinctiveWords = (texts: readonly string[]): Set<string> =>
  new Set(texts.flatMap((text) => extractWords(text)).filter((word) => !/^\d{1,2}$/.test(word)))
