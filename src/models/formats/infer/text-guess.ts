import {
  type NodeTag,
  type ResponseNode,
  readNodeName,
  splitNameIntoWords,
  startsAlike,
  toJmesPath,
  toTagCondition,
} from './response-nodes.ts'

/** Guesses which text of a response is the reply, and which is the reasoning. */

/** `sure`: the name of the text supports the guess. */
export type TextGuess = { path: string; sure: boolean; node: ResponseNode }

const textNameScores = new Map(Object.entries({
  content: 4, text: 4, answer: 4, reply: 4, response: 3, output: 3, completion: 3, generated: 3, generation: 3,
  says: 3, said: 3, message: 2, msg: 2, result: 2, transcript: 4, transcription: 4, delta: 2, token: 2, chunk: 2,
  body: 1, value: 1, data: 1, summary: 1, translation: 2, utterance: 3, speech: 2,
})) // biome-ignore format: a table
const otherNames = new Set(
  (
    'id ids uuid model engine role type kind object status state created date time timestamp version fingerprint ' +
    'finish finished stop stopped reason done url uri href link signature hash language lang locale currency prompt query question ' +
    'input event code author user username region name title label key tier format encoding mime provider'
  ).split(' '),
)
const reasoningName = /reason(ing)?|think(ing)?|thoughts?|rationale|chain|cot|reflection|deliberation/
const endingName = /(finish|stop|done|end|ended|completion|termination)[ _]?(reason|cause|why)/

const isData = (text: string): boolean =>
  /^(https?|data|gs|s3):/i.test(text) ||
  /^\d{4}-\d\d-\d\dT/.test(text) ||
  /^[0-9a-f-]{16,}$/i.test(text) ||
  (text.length > 60 && /^[A-Za-z0-9+/=_-]+$/.test(text))

const joinTexts = ({ values }: ResponseNode): string =>
  values.filter((value) => typeof value === 'string').join('')

const isOtherName = (node: ResponseNode): boolean =>
  splitNameIntoWords(readNodeName(node)).some((word) => otherNames.has(word))

const isReasoning = (node: ResponseNode): boolean => {
  if (isOtherName(node)) return false
  const words = [...node.tags.map(({ value }) => value), readNodeName(node)]
    .flatMap(splitNameIntoWords)
    .join(' ')
  return reasoningName.test(words) && !endingName.test(words)
}

const scoreName = (node: ResponseNode): number => {
  if (isOtherName(node)) return -10
  const words = splitNameIntoWords(readNodeName(node))
  return Math.max(0, ...words.map((word) => textNameScores.get(word) ?? 0))
}

const scoreNode = (node: ResponseNode, documents: number): number => {
  const joined = joinTexts(node)
  if (joined !== '' && isData(joined)) return -10
  const length = Math.min(3, Math.log10(joined.length + 1))
  const spread = documents > 1 ? (3 * node.documentCount) / documents : 0
  return scoreName(node) + length + (/\s/.test(joined.trim()) ? 2 : 0) + spread - node.steps.length * 0.2
}

/** Whether another object of the list has another tag; for events only if it has the same member. */
const isRival = (other: ResponseNode, node: ResponseNode, tag: NodeTag): boolean => {
  const own = other.tags.find(({ depth }) => depth === tag.depth)
  if (own === undefined || own.value === tag.value || !startsAlike(other, node, tag.depth)) return false
  return tag.depth > 0 || (other.steps.length === node.steps.length && startsAlike(other, node))
}

/** Tags are part of the path when objects with another tag are in the same list. */
const toTextGuess = (node: ResponseNode, nodes: readonly ResponseNode[], sure: boolean): TextGuess => {
  const conditions = node.tags.filter((tag) => nodes.some((other) => isRival(other, node, tag)))
  const path = toJmesPath(node.steps, { conditions })
  const root = conditions.find(({ depth }) => depth === 0)
  return { path: root === undefined ? path : `${toTagCondition(root)} && ${path}`, sure, node }
}

/** Paths of `text` and `reasoning`; `documents` is the number of events, or 1. `close`: a text with nearly the same score. */
export const guessTexts = (
  nodes: readonly ResponseNode[],
  documents: number,
  isExcluded: (node: ResponseNode) => boolean,
): { text: TextGuess | null; reasoning: TextGuess | null; close: ResponseNode | null } => {
  const free = nodes.filter(
    (node) => node.values.some((value) => typeof value === 'string') && !isExcluded(node),
  )
  const [thought] = free
    .filter((node) => isReasoning(node) && joinTexts(node) !== '')
    .toSorted((a, b) => joinTexts(b).length - joinTexts(a).length)
  const [first, second] = free
    .filter((node) => !isReasoning(node))
    .map((node) => ({ node, score: scoreNode(node, documents) }))
    .filter(({ score }) => score > 1.5)
    .toSorted((a, b) => b.score - a.score)
  const sure = first !== undefined && scoreName(first.node) > 0
  return {
    text: first === undefined ? null : toTextGuess(first.node, nodes, sure),
    reasoning: thought === undefined ? null : toTextGuess(thought, nodes, true),
    close: first !== undefined && second !== undefined && first.score - second.score < 1 ? second.node : null,
  }
}
