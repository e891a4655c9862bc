import { isJsonObject } from '../../../infra/lib/json-text.ts'
import type { FormatPaths } from '../../schemas/response-format.ts'
import { readErrorValue } from '../result-parts.ts'
import { readTokenCount, type TokenCounts, tokenCountNames } from '../token-counts.ts'
import { guessCalls, guessEmbedding, guessImages, guessRanking, guessVideo } from './list-guess.ts'
import {
  collectNodes,
  eachElement,
  type ResponseNode,
  readNodeName,
  splitNameIntoWords,
  toJmesPath,
  toTagCondition,
} from './response-nodes.ts'
import { guessTexts } from './text-guess.ts'

/** Guesses the paths of a format by the names and shapes of the values in a response. */

const kinds: readonly (readonly [keyof TokenCounts, RegExp])[] = [
  ['cached_tokens', /\b(cached?|hit)\b/],
  ['reasoning_tokens', /\b(reasoning|thinking|thoughts?)\b/],
  ['prompt_tokens', /\b(prompt|input|in|request|question|context|sent|read|consumed)\b/],
  [
    'completion_tokens',
    /\b(completion|output|out|generated|response|candidates?|answer|written|produced|received)\b/,
  ],
  ['total_tokens', /\b(total|all|sum|overall|billed|used)\b/],
]
const findCountName = (words: string): keyof TokenCounts | undefined =>
  kinds.find(([, names]) => names.test(words))?.[0]

const readParentName = ({ steps }: ResponseNode): string =>
  splitNameIntoWords(readNodeName({ steps: steps.slice(0, -1) })).join(' ')

const isCount = (own: string, parent: string): boolean =>
  /\btokens?\b/.test(own) ? true : /\b(tokens?|usage)\b/.test(parent) || /\beval count\b/.test(own)

const guessCountName = (node: ResponseNode): keyof TokenCounts | undefined => {
  const own = splitNameIntoWords(readNodeName(node)).join(' ')
  const parent = readParentName(node)
  if (/\b(ms|duration|time|seconds|cost|price|limit|max|miss|creation|per)\b/.test(own)) return undefined
  if (!isCount(own, parent)) return undefined
  // Ollama's names
  if (own === 'eval count') return 'completion_tokens'
  return (
    findCountName(own) ??
    (/\btokens?\b/.test(own) && !/detail/.test(parent) ? findCountName(parent) : undefined)
  )
}

/** Null when no number counts tokens. */
const guessUsage = (nodes: readonly ResponseNode[]): Exclude<FormatPaths['usage'], string> | null => {
  const nodeByName = new Map<keyof TokenCounts, ResponseNode>()
  const counts = nodes.filter(
    ({ values, steps }) => steps.length > 0 && values.some((one) => readTokenCount(one) !== null),
  )
  for (const node of counts.toSorted((a, b) => a.steps.length - b.steps.length)) {
    const kind = guessCountName(node)
    if (kind !== undefined && !nodeByName.has(kind)) nodeByName.set(kind, node)
  }
  const entries = tokenCountNames.flatMap((name) => {
    const node = nodeByName.get(name)
    return node === undefined ? [] : [[name, toJmesPath(node.steps)] as const]
  })
  return entries.length === 0 ? null : Object.fromEntries(entries)
}

/** `unsure`: the guesses that an admin should check. */
export type GuessedPaths = { category: string; paths: FormatPaths; unsure: string[] }

const isWord = (value: unknown): boolean => typeof value === 'string' && /^[\w.-]{1,40}$/.test(value)

/** In a stream only the last events have a finish reason. */
const guessFinish = (nodes: readonly ResponseNode[], documents: number): string | null => {
  const late = ({ lastDocument, values }: ResponseNode): boolean =>
    documents === 1 ||
    (lastDocument >= documents - 3 && values.filter((one) => isWord(one) || one === true).length <= 3)
  const named = nodes.filter((node) =>
    /finish|stop|done|ended?\b|complete/i.test(splitNameIntoWords(readNodeName(node)).join(' ')),
  )
  const word = named.find((node) => node.values.some(isWord) && late(node))
  const flag = named.find((node) => node.values.includes(true) && late(node))
  const node = word ?? flag
  if (node !== undefined) return toJmesPath(node.steps)
  const [tag] = documents > 1 ? lastTags(nodes, documents) : []
  return tag === undefined ? null : toTagCondition(tag)
}

/** The tag of a last event such as `{type: "end"}`. */
const lastTags = (nodes: readonly ResponseNode[], documents: number) =>
  nodes.flatMap(({ tags: [tag], documentCount, lastDocument }) =>
    tag?.depth === 0 &&
    documentCount === 1 &&
    lastDocument === documents - 1 &&
    /end|done|stop|finish|complete|final|close/i.test(tag.value)
      ? [tag]
      : [],
  )

const guessModel = (nodes: readonly ResponseNode[]): string | null => {
  const node = nodes.find(
    (one) =>
      /^(model|model_?name|model_?id|model_?version|engine)$/i.test(readNodeName(one)) &&
      one.steps.at(-1) !== eachElement &&
      one.values.every((value) => typeof value === 'string'),
  )
  return node === undefined ? null : toJmesPath(node.steps)
}

const guessJob = (nodes: readonly ResponseNode[]): { job_id?: string; status?: string } => {
  const flat = nodes.filter(({ steps }) => steps.length <= 3 && !steps.includes(eachElement))
  const id =
    flat.find((node) => /^(task|job|operation|prediction|generation|video)_?id$/i.test(readNodeName(node))) ??
    flat.find((node) => /^(id|request_?id|name)$/i.test(readNodeName(node)) && node.values.every(isWord))
  const status = flat.find((node) => /status|state/i.test(readNodeName(node)) && node.values.every(isWord))
  return {
    ...(id === undefined ? {} : { job_id: toJmesPath(id.steps) }),
    ...(status === undefined ? {} : { status: toJmesPath(status.steps) }),
  }
}

type Shapes = Record<'embedding' | 'ranking' | 'images' | 'video', string | null>

const guessCategory = (shapes: Shapes, hasText: boolean, hasCalls: boolean, hasJob: boolean): string => {
  if (shapes.ranking !== null) return 'rerank'
  if (shapes.embedding !== null) return 'embedding'
  if (hasCalls) return 'text'
  if (shapes.video !== null) return 'text-to-video'
  if (shapes.images !== null) return 'text-to-image'
  return hasText || !hasJob ? 'text' : 'text-to-video'
}

/** The paths that a category uses; others are left out of the proposal. */
const pathsByCategory: Readonly<Record<string, readonly (keyof FormatPaths)[]>> = {
  embedding: ['embedding', 'model', 'error', 'usage'],
  rerank: ['ranking', 'model', 'error', 'usage'],
  'text-to-image': ['images', 'job_id', 'status', 'model', 'error', 'usage'],
  'image-edit': ['images', 'job_id', 'status', 'model', 'error', 'usage'],
  'text-to-video': ['video', 'job_id', 'status', 'model', 'error', 'usage'],
  'speech-to-text': ['text', 'model', 'error', 'usage'],
}
const textPaths: readonly (keyof FormatPaths)[] = [
  'text',
  'reasoning',
  'tool_calls',
  'finish',
  'model',
  'error',
  'usage',
]

const guessError = (documents: readonly unknown[]): string | null =>
  documents.some(
    (one) => isJsonObject(one) && Object.hasOwn(one, 'error') && readErrorValue(one.error) === null,
  )
    ? 'error'
    : null

const pickPaths = (guesses: Record<string, unknown>, names: readonly string[]): FormatPaths =>
  Object.fromEntries(
    names.flatMap((name) => (guesses[name] == null ? [] : [[name, guesses[name]]])),
  ) as FormatPaths

const isWithin = (node: ResponseNode, outer: ResponseNode): boolean =>
  outer.steps.length > 0 &&
  outer.steps.every((step, at) => node.steps[at] === step) &&
  outer.tags.every(({ value }, at) => node.tags[at]?.value === value)

/** `documents` is one whole response, or the events of a stream. */
export const guessPaths = (documents: readonly unknown[], category: string | undefined): GuessedPaths => {
  const nodes = collectNodes(documents)
  const streamed = documents.length > 1
  const calls = guessCalls(nodes, streamed)
  const inCalls = (node: ResponseNode): boolean => calls !== null && isWithin(node, calls.node)
  const texts = guessTexts(nodes, documents.length, inCalls)
  const shapes = {
    embedding: guessEmbedding(nodes),
    ranking: guessRanking(nodes),
    images: guessImages(nodes),
    video: guessVideo(nodes),
  }
  const job = guessJob(nodes)
  const hasJob = job.job_id !== undefined && job.status !== undefined
  const kind = category ?? guessCategory(shapes, texts.text !== null, calls !== null, hasJob)
  const done = shapes.images !== null || shapes.video !== null
  const guesses = {
    ...shapes,
    ...(hasJob && !done ? job : {}),
    text: texts.text?.path,
    reasoning: texts.reasoning?.path,
    tool_calls: calls?.path,
    finish: guessFinish(nodes, documents.length),
    model: guessModel(nodes),
    error: guessError(documents),
    usage: guessUsage(nodes),
  }
  const paths = pickPaths(guesses, pathsByCategory[kind] ?? textPaths)
  const unsure: string[] = []
  if (paths.text !== undefined && texts.text?.sure === false)
    unsure.push(`text: ${paths.text} was chosen for its length and its words, not for its name`)
  if (paths.text !== undefined && texts.close !== null)
    unsure.push(`text: ${toJmesPath(texts.close.steps)} could be it as well`)
  if (paths.usage === undefined) unsure.push('usage: no token counts were found; they will be estimated')
  if (paths.finish === undefined && (pathsByCategory[kind] ?? textPaths).includes('finish'))
    unsure.push('finish: no finish reason was found; every response counts as complete')
  return { category: kind, paths, unsure }
}
