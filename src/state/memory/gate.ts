import { cosine, hashEmbedding } from './hash-embedding.ts'
import { type Junk, junkOf } from './junk.ts'
import type { MemoryKind } from './kinds.ts'
import { saysChange, saysNo, subjectOf } from './subject.ts'
import { normalise, wordsOf } from './words.ts'

/** What is remembered already, as far as the gate looks at it. */
export type Known = { id: string; content: string; kind: MemoryKind }

export type Verdict =
  | {
      keep: true
      content: string
      kind: MemoryKind
      subject: string | null
      /** What is known and no longer true. */
      supersedes: string[]
    }
  /** `forgotten`: it was said before its user had something forgotten. */
  | { keep: false; why: Junk | 'too long' | 'forgotten' }
  | { keep: false; why: 'duplicate'; of: string }

const mostChars = 500
const sameCosine = 0.9
const nearShare = 0.3

/**
 * Whether a statement is new, true of this user and worth keeping, by rules alone. `known` is what a search for it
 * found of the same user; `kind` and `subject` are the writer's, where he has said them.
 */
export const passGate = (
  candidate: { content: string; kind?: MemoryKind; subject?: string | null },
  known: readonly Known[],
): Verdict => {
  const content = candidate.content.trim().replace(/\s+/g, ' ')
  if (content.length > mostChars) return { keep: false, why: 'too long' }
  const junk = junkOf(content)
  if (junk) return { keep: false, why: junk }
  const duplicate = known.find((one) => saysTheSame(one.content, content))
  if (duplicate) return { keep: false, why: 'duplicate', of: duplicate.id }
  const kind = candidate.kind ?? kindOf(content)
  const subject = candidate.subject ?? subjectOf(content)
  const supersedes = known.filter((one) => isOutdated(one, { content, subject })).map(({ id }) => id)
  return { keep: true, content, kind, subject, supersedes }
}

const figuresOf = (text: string): string => (normalise(text).match(/\d+/g) ?? []).join()

/** The same words, or nearly, with the same figures and neither denying what the other says; or a part of the old. */
const saysTheSame = (one: string, other: string): boolean => {
  if (saysNo(one) !== saysNo(other)) return false
  const [old, now] = [plainWords(one), plainWords(other)]
  if (isPlain(one, other) && isPartOf(old, now)) return true
  if (figuresOf(one) !== figuresOf(other)) return false
  const [a, b] = [new Set(old), new Set(now)]
  if (a.size === b.size && a.size > 0 && [...a].every((word) => b.has(word))) return true
  return cosine(hashEmbedding(one), hashEmbedding(other)) >= sameCosine
}

/** Words in which a wish is said: one for another, but never for having it. */
const wishes = /\b(?:would )?(?:prefers?|likes?|wants?)\b|\bplease(?: always)?\b|^always\b|喜欢|希望|想要|请/g
/** Words of number and of being, with which the same is said in another way. */
const frames =
  /\b(?:always|all|every|each|any|called|named)\b|一律|总是|都|是|叫|在|一?[名个位只家](?=\p{Script=Han}{2})/gu

const plainWords = (text: string): string[] =>
  wordsOf(
    normalise(text)
      .replace(/n't\b/g, ' not')
      .replace(/'(?:m|s|re|ve|ll|d)\b/g, ' ')
      .replace(wishes, ' wish ')
      .replace(frames, ' '),
  )

const hedged =
  /\b(?:used to|former|formerly|until|before|plans?|hopes?|wants?|would|might|may|if|unless|except|but|only)\b|以前|曾|打算|希望|想|如果|除|但|只/

/** Whether the old one says what it says plainly, and the new one no change. */
const isPlain = (old: string, content: string): boolean =>
  !saysChange(content) && !hedged.test(normalise(old))

/** Whether the words of a new statement stand side by side in an old one. */
const isPartOf = (old: readonly string[], part: readonly string[]): boolean =>
  part.length >= 2 && ` ${old.join(' ')} `.includes(` ${part.join(' ')} `)

/** Of the same single subject; or said to have changed, or denied, in much the same words. */
const isOutdated = (
  old: Known,
  { content, subject }: { content: string; subject: string | null },
): boolean => {
  if (subject !== null && subjectOf(old.content) === subject) return true
  const { shared, share } = sharedWords(old.content, content)
  const isDenied = saysNo(old.content) !== saysNo(content) && share === 1
  return isDenied || (saysChange(content) && shared > 1 && share >= nearShare)
}

/** How many words both have, and their share of the shorter text; words that only deny are not counted. */
const sharedWords = (one: string, other: string): { shared: number; share: number } => {
  const [a, b] = [toldWords(one), toldWords(other)]
  const [small, large] = a.size <= b.size ? [a, b] : [b, a]
  const shared = [...small].filter((word) => large.has(word)).length
  return { shared, share: small.size === 0 ? 0 : shared / small.size }
}

const toldWords = (text: string): Set<string> =>
  new Set(wordsOf(text.replace(/\b(?:do(?:es)?n't|not|never)\b|不/gi, ' ')))

const preference =
  /\b(?:prefer|prefers|like|likes|love|loves|dislike|dislikes|hate|hates|favou?rite|rather|always|never|don't|please|from now on|call me|avoid)\b|喜欢|偏好|最爱|讨厌|不吃|请|以后|总是|不要|更愿意/
const knowledge =
  /\b(?:our|the user's) (?:company|team|fiscal|policy|department|finance|customers?|product|database|system|\w+ policy)\b|\b(?:means|stands for|is defined as|deploys?|fiscal year)\b|我们(?:公司|团队|部门|的系统)|定义为|指的是|财年/

/** What kind of memory a statement is, by its words. */
export const kindOf = (content: string): MemoryKind => {
  const text = normalise(content)
  if (knowledge.test(text)) return 'knowledge'
  return preference.test(text) ? 'preference' : 'fact'
}
