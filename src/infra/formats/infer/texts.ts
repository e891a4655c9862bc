import { type Node, nameOf, pathOf, type Tag, testOf, wordsOf } from './nodes.ts'

/** Which of the texts in an answer is what the model said, and which is what it thought. */

export type Guess = { path: string; sure: boolean; node: Node }

const sayingNames: Readonly<Record<string, number>> = {
  content: 4, text: 4, answer: 4, reply: 4, response: 3, output: 3, completion: 3, generated: 3, generation: 3,
  says: 3, said: 3, message: 2, msg: 2, result: 2, transcript: 4, transcription: 4, delta: 2, token: 2, chunk: 2,
  body: 1, value: 1, data: 1, summary: 1, translation: 2, utterance: 3, speech: 2,
} // biome-ignore format: a table
const otherNames = new Set(
  (
    'id ids uuid model engine role type kind object status state created date time timestamp version fingerprint ' +
    'finish finished stop stopped reason done url uri href link signature hash language lang locale currency prompt query question ' +
    'input event code author user username region name title label key tier format encoding mime provider'
  ).split(' '),
)
const thinkingName = /reason(ing)?|think(ing)?|thoughts?|rationale|chain|cot|reflection|deliberation/
const endingName = /(finish|stop|done|end|ended|completion|termination)[ _]?(reason|cause|why)/

const looksLikeData = (text: string): boolean =>
  /^(https?|data|gs|s3):/i.test(text) ||
  /^\d{4}-\d\d-\d\dT/.test(text) ||
  /^[0-9a-f-]{16,}$/i.test(text) ||
  (text.length > 60 && /^[A-Za-z0-9+/=_-]+$/.test(text))

const textsIn = (node: Node): string[] => node.values.filter((value) => typeof value === 'string')

const isOther = (node: Node): boolean => wordsOf(nameOf(node)).some((word) => otherNames.has(word))

const isThinking = (node: Node): boolean => {
  if (isOther(node)) return false
  const words = [...node.tags.map(({ value }) => value), nameOf(node)].flatMap(wordsOf).join(' ')
  return thinkingName.test(words) && !endingName.test(words)
}

const nameScore = (node: Node): number => {
  const words = wordsOf(nameOf(node))
  if (isOther(node)) return -10
  return Math.max(
    0,
    ...words.map((word) => (Object.hasOwn(sayingNames, word) ? (sayingNames[word] ?? 0) : 0)),
  )
}

const scoreOf = (node: Node, documents: number): number => {
  const texts = textsIn(node)
  const joined = texts.join('')
  if (texts.length === 0 || (joined !== '' && looksLikeData(joined))) return -10
  const length = Math.min(3, Math.log10(joined.length + 1))
  const spread = documents > 1 ? (3 * node.seen) / documents : 0
  return nameScore(node) + length + (/\s/.test(joined.trim()) ? 2 : 0) + spread - node.steps.length * 0.2
}

const sameSteps = (a: Node, b: Node): boolean =>
  a.steps.length === b.steps.length && a.steps.every((step, at) => step === b.steps[at])

const startsAlike = (a: Node, b: Node, depth: number): boolean =>
  a.steps.length >= depth && a.steps.slice(0, depth).every((step, at) => step === b.steps[at])

/** Another object beside the tagged one has another tag; of events only if it has the same member. */
const isRival = (other: Node, node: Node, tag: Tag): boolean => {
  const own = other.tags.find(({ depth }) => depth === tag.depth)
  if (own === undefined || own.value === tag.value || !startsAlike(other, node, tag.depth)) return false
  return tag.depth > 0 || sameSteps(other, node)
}

/** Tags are part of the path where others of another tag stand beside it. */
const guessOf = (node: Node, nodes: readonly Node[], sure: boolean): Guess => {
  const conditions = node.tags.filter((tag) => nodes.some((other) => isRival(other, node, tag)))
  const path = pathOf(node.steps, { conditions })
  const root = conditions.find(({ depth }) => depth === 0)
  return { path: root === undefined ? path : `${testOf(root)} && ${path}`, sure, node }
}

/** Paths of `text` and `reasoning`; `documents` is how many events there are, or 1. */
export const guessTexts = (
  nodes: readonly Node[],
  documents: number,
  taken: (node: Node) => boolean,
): { text: Guess | null; reasoning: Guess | null; close: Node | null } => {
  const best = (some: Node[]): { node: Node; score: number }[] =>
    some
      .map((node) => ({ node, score: scoreOf(node, documents) }))
      .filter(({ score }) => score > 1.5)
      .toSorted((a, b) => b.score - a.score)
  const free = nodes.filter((node) => textsIn(node).length > 0 && !taken(node))
  const [thought] = free
    .filter((node) => isThinking(node) && textsIn(node).join('') !== '')
    .map((node) => ({ node, size: textsIn(node).join('').length }))
    .toSorted((a, b) => b.size - a.size)
  const [first, second] = best(free.filter((node) => !isThinking(node)))
  const sure = first !== undefined && nameScore(first.node) > 0
  return {
    text: first === undefined ? null : guessOf(first.node, nodes, sure),
    reasoning: thought === undefined ? null : guessOf(thought.node, nodes, true),
    close: first !== undefined && second !== undefined && first.score - second.score < 1 ? second.node : null,
  }
}
