import { isJsonObject } from '../../../infra/lib/json-text.ts'
import type { PathName } from '../../ports/model-ports.ts'
import type { FormatPaths } from '../../schemas/response-format.ts'
import { listRequiredPaths } from '../required-paths.ts'
import { readErrorValue } from '../result-parts.ts'
import { readTokenCount, type TokenCounts, tokenCountNames } from '../token-counts.ts'
import { guessCalls, guessEmbedding, guessImages, guessRanking, guessVideo } from './list-guess.ts'
import {
  collectNodes,
  eachElement,
  type ResponseNode,
  readNodeName,
  readNodeWords,
  startsAlike,
  toJmesPath,
  toNodePath,
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

const guessCountName = (node: ResponseNode): keyof TokenCounts | undefined => {
  const own = readNodeWords(node)
  const parent = readNodeWords({ steps: node.steps.slice(0, -1) })
  if (/\b(ms|duration|time|seconds|cost|price|limit|max|miss|creation|per)\b/.test(own)) return undefined
  if (!/\b(tokens?|eval count)\b/.test(own) && !/\b(tokens?|usage)\b/.test(parent)) return undefined
  // Ollama's names
  if (own === 'eval count') return 'completion_tokens'
  return (
    findCountName(own) ??
    (/\btokens?\b/.test(own) && !/detail/.test(parent) ? findCountName(parent) : undefined)
  )
}

/** Null when no number counts tokens. */
const guessUsage = (nodes: readonly ResponseNode[]): Exclude<FormatPaths['usage'], string> | null => {
  const counts = nodes
    .filter(({ values }) => values.some((one) => readTokenCount(one) !== null))
    .toSorted((a, b) => a.steps.length - b.steps.length)
    .map((node) => ({ kind: guessCountName(node), path: toJmesPath(node.steps) }))
  const entries = tokenCountNames.flatMap((name) => {
    const count = counts.find(({ kind }) => kind === name)
    return count === undefined ? [] : [[name, count.path] as const]
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
  const named = nodes.filter(
    (node) => /finish|stop|done|ended?\b|complete/i.test(readNodeWords(node)) && late(node),
  )
  const word = named.find(({ values }) => values.some(isWord))
  const flag = named.find(({ values }) => values.includes(true))
  const tag = documents === 1 ? undefined : nodes.flatMap((node) => findLastTag(node, documents))[0]
  return toNodePath(word ?? flag) ?? (tag === undefined ? null : toTagCondition(tag))
}

/** The tag of a last event such as `{type: "end"}`. */
const findLastTag = ({ tags: [tag], documentCount, lastDocument }: ResponseNode, documents: number) =>
  tag?.depth === 0 &&
  documentCount === 1 &&
  lastDocument === documents - 1 &&
  /end|done|stop|finish|complete|final|close/i.test(tag.value)
    ? [tag]
    : []

const guessModel = (nodes: readonly ResponseNode[]): string | null =>
  toNodePath(
    nodes.find(
      (one) =>
        /^(model|model_?name|model_?id|model_?version|engine)$/i.test(readNodeName(one)) &&
        one.steps.at(-1) !== eachElement &&
        one.values.every((value) => typeof value === 'string'),
    ),
  )

/** Null without an id and a status. */
const guessJob = (nodes: readonly ResponseNode[]): { job_id: string; status: string } | null => {
  const flat = nodes.filter(({ steps }) => steps.length <= 3 && !steps.includes(eachElement))
  const id =
    flat.find((node) => /^(task|job|operation|prediction|generation|video)_?id$/i.test(readNodeName(node))) ??
    flat.find((node) => /^(id|request_?id|name)$/i.test(readNodeName(node)) && node.values.every(isWord))
  const status = flat.find((node) => /status|state/i.test(readNodeName(node)) && node.values.every(isWord))
  return id && status ? { job_id: toJmesPath(id.steps), status: toJmesPath(status.steps) } : null
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
const listPathNames = (category: string): readonly PathName[] => {
  const required = listRequiredPaths(category)
  const common = ['model', 'error', 'usage'] as const
  if (required.includes('tool_calls')) return ['text', 'reasoning', 'tool_calls', 'finish', ...common]
  const isPolled = required.includes('images') || required.includes('video')
  return isPolled ? [...required, 'job_id', 'status', ...common] : [...required, ...common]
}

const guessError = (documents: readonly unknown[]): string | null =>
  documents.some(
    (one) => isJsonObject(one) && Object.hasOwn(one, 'error') && readErrorValue(one.error) === null,
  )
    ? 'error'
    : null

const isWithin = (node: ResponseNode, outer: ResponseNode): boolean =>
  startsAlike(node, outer) && outer.tags.every(({ value }, at) => node.tags[at]?.value === value)

/** `documents` is one whole response, or the events of a stream. */
export const guessPaths = (documents: readonly unknown[], category: string | undefined): GuessedPaths => {
  const nodes = collectNodes(documents)
  const calls = guessCalls(nodes, documents.length > 1)
  const inCalls = (node: ResponseNode): boolean => calls !== null && isWithin(node, calls.node)
  const texts = guessTexts(nodes, documents.length, inCalls)
  const shapes = {
    embedding: guessEmbedding(nodes),
    ranking: guessRanking(nodes),
    images: guessImages(nodes),
    video: guessVideo(nodes),
  }
  const job = guessJob(nodes)
  const kind = category ?? guessCategory(shapes, texts.text !== null, calls !== null, job !== null)
  const done = shapes.images !== null || shapes.video !== null
  const guesses = {
    ...shapes,
    ...(done ? null : job),
    text: texts.text?.path,
    reasoning: texts.reasoning?.path,
    tool_calls: calls?.path,
    finish: guessFinish(nodes, documents.length),
    model: guessModel(nodes),
    error: guessError(documents),
    usage: guessUsage(nodes),
  }
  const names = listPathNames(kind)
  const paths: FormatPaths = Object.fromEntries(
    Object.entries(guesses).filter(([name, path]) => path != null && names.includes(name as PathName)),
  )
  const unsure: string[] = []
  if (paths.text !== undefined && texts.text?.sure === false)
    unsure.push(`text: ${paths.text} was chosen for its length and its words, not for its name`)
  if (paths.text !== undefined && texts.close !== null)
    unsure.push(`text: ${toJmesPath(texts.close.steps)} could be it as well`)
  if (paths.usage === undefined) unsure.push('usage: no token counts were found; they will be estimated')
  if (paths.finish === undefined && names.includes('finish'))
    unsure.push('finish: no finish reason was found; every response counts as complete')
  return { category: kind, paths, unsure }
}
