import type { MemoryKind } from '../../state/memory-kinds.ts'
import type { GateVerdict } from '../../state/ports/memories.ts'
import { extractWords, normalizeText } from '../../state/text/words.ts'
import { computeCosine, computeHashEmbedding } from './hash-embedding.ts'
import { findRejectionReason } from './rejection-rules.ts'
import { detectSubject, statesChange, statesNegation } from './single-subjects.ts'

/** A memory as the gate compares it. */
export type KnownMemory = { id: string; content: string; kind: MemoryKind }

const maxChars = 500
const sameCosine = 0.9
const minSharedShare = 0.3

/**
 * Decides by rules alone whether a statement is new, true of this user and worth keeping. `similar`: memories of the same
 * user that a search for it returned. `kind` and `subject`: from the writer, else detected.
 */
export const judgeNote = (
  candidate: { content: string; kind?: MemoryKind; subject?: string | null },
  similar: readonly KnownMemory[],
): GateVerdict => {
  const content = candidate.content.trim().replace(/\s+/g, ' ')
  if (content.length > maxChars) return { keep: false, reason: 'too long' }
  const reason = findRejectionReason(content)
  if (reason) return { keep: false, reason }
  const duplicate = similar.find((one) => saysTheSame(one.content, content))
  if (duplicate) return { keep: false, reason: 'duplicate', duplicateOf: duplicate.id }
  const kind = candidate.kind ?? detectMemoryKind(content)
  const subject = candidate.subject ?? detectSubject(content)
  const supersedes = similar.filter((one) => isOutdated(one, { content, subject })).map(({ id }) => id)
  return { keep: true, content, kind, subject, supersedes }
}

const extractFigures = (text: string): string => (normalizeText(text).match(/\d+/g) ?? []).join()

/** The same words or nearly, the same figures and no contradiction; or the new one is a part of the old one. */
const saysTheSame = (one: string, other: string): boolean => {
  if (statesNegation(one) !== statesNegation(other)) return false
  const [old, now] = [comparableWords(one), comparableWords(other)]
  if (isPlain(one, other) && isPartOf(old, now)) return true
  if (extractFigures(one) !== extractFigures(other)) return false
  const [a, b] = [new Set(old), new Set(now)]
  if (a.size === b.size && a.size > 0 && [...a].every((word) => b.has(word))) return true
  return computeCosine(computeHashEmbedding(one), computeHashEmbedding(other)) >= sameCosine
}

/** Words of a wish, which mean the same as each other; words of having are different. */
const wishes = /\b(?:would )?(?:prefers?|likes?|wants?)\b|\bplease(?: always)?\b|^always\b|喜欢|希望|想要|请/g
/** Words of number and of being, which do not change what a statement says. */
const frames =
  /\b(?:always|all|every|each|any|called|named)\b|一律|总是|都|是|叫|在|一?[名个位只家](?=\p{Script=Han}{2})/gu

const comparableWords = (text: string): string[] =>
  extractWords(
    normalizeText(text)
      .replace(/n't\b/g, ' not')
      .replace(/'(?:m|s|re|ve|ll|d)\b/g, ' ')
      .replace(wishes, ' wish ')
      .replace(frames, ' '),
  )

const hedged =
  /\b(?:used to|former|formerly|until|before|plans?|hopes?|wants?|would|might|may|if|unless|except|but|only)\b|以前|曾|打算|希望|想|如果|除|但|只/

/** Whether the old statement has no condition and the new one states no change. */
const isPlain = (old: string, content: string): boolean =>
  !statesChange(content) && !hedged.test(normalizeText(old))

/** Whether the old statement contains the new one's words in a row. */
const isPartOf = (old: readonly string[], part: readonly string[]): boolean =>
  part.length >= 2 && ` ${old.join(' ')} `.includes(` ${part.join(' ')} `)

/** About the same single subject; or the new statement changes or denies it in mostly the same words. */
const isOutdated = (
  old: KnownMemory,
  { content, subject }: { content: string; subject: string | null },
): boolean => {
  if (subject !== null && detectSubject(old.content) === subject) return true
  const { shared, share } = sharedWords(old.content, content)
  const isDenied = statesNegation(old.content) !== statesNegation(content) && share === 1
  return isDenied || (statesChange(content) && shared > 1 && share >= minSharedShare)
}

/** The number of words both have, and their share of the shorter text; negations do not count. */
const sharedWords = (one: string, other: string): { shared: number; share: number } => {
  const [a, b] = [contentWords(one), contentWords(other)]
  const [small, large] = a.size <= b.size ? [a, b] : [b, a]
  const shared = [...small].filter((word) => large.has(word)).length
  return { shared, share: small.size === 0 ? 0 : shared / small.size }
}

const contentWords = (text: string): Set<string> =>
  new Set(extractWords(text.replace(/\b(?:do(?:es)?n't|not|never)\b|不/gi, ' ')))

const preference =
  /\b(?:prefer|prefers|like|likes|love|loves|dislike|dislikes|hate|hates|favou?rite|rather|always|never|don't|please|from now on|call me|avoid)\b|喜欢|偏好|最爱|讨厌|不吃|请|以后|总是|不要|更愿意/
const knowledge =
  /\b(?:our|the user's) (?:company|team|fiscal|policy|department|finance|customers?|product|database|system|\w+ policy)\b|\b(?:means|stands for|is defined as|deploys?|fiscal year)\b|我们(?:公司|团队|部门|的系统)|定义为|指的是|财年/

/** The kind of memory that a statement is, by its words. */
export const detectMemoryKind = (content: string): MemoryKind => {
  const text = normalizeText(content)
  if (knowledge.test(text)) return 'knowledge'
  return preference.test(text) ? 'preference' : 'fact'
}
