import type { Paths } from '../../../state/registry/response-format.ts'
import { errorOf } from '../parts.ts'
import { guessUsage } from './counts.ts'
import { guessCalls, guessEmbedding, guessImages, guessRanking, guessVideo } from './lists.ts'
import { each, isObject, type Node, nameOf, nodesOf, pathOf, testOf, wordsOf } from './nodes.ts'
import { guessTexts } from './texts.ts'

export type Guessed = { category: string; paths: Paths; unsure: string[] }

const isWord = (value: unknown): boolean => typeof value === 'string' && /^[\w.-]{1,40}$/.test(value)

/** In a stream the end is said late: in the last events and in no earlier one. */
const guessFinish = (nodes: readonly Node[], documents: number): string | null => {
  const late = ({ last, values }: Node): boolean =>
    documents === 1 ||
    (last >= documents - 3 && values.filter((one) => isWord(one) || one === true).length <= 3)
  const named = nodes.filter((node) =>
    /finish|stop|done|ended?\b|complete/i.test(wordsOf(nameOf(node)).join(' ')),
  )
  const word = named.find((node) => node.values.some(isWord) && late(node))
  const flag = named.find((node) => node.values.includes(true) && late(node))
  const node = word ?? flag
  if (node !== undefined) return pathOf(node.steps)
  const [tag] = documents > 1 ? lastTags(nodes, documents) : []
  return tag === undefined ? null : testOf(tag)
}

/** Events of a kind of its own at the end, such as `{type: "end"}`. */
const lastTags = (nodes: readonly Node[], documents: number) =>
  nodes.flatMap(({ tags: [tag], seen, last }) =>
    tag?.depth === 0 &&
    seen === 1 &&
    last === documents - 1 &&
    /end|done|stop|finish|complete|final|close/i.test(tag.value)
      ? [tag]
      : [],
  )

const guessModel = (nodes: readonly Node[]): string | null => {
  const node = nodes.find(
    (one) =>
      /^(model|model_?name|model_?id|model_?version|engine)$/i.test(nameOf(one)) &&
      one.steps.at(-1) !== each &&
      one.values.every((value) => typeof value === 'string'),
  )
  return node === undefined ? null : pathOf(node.steps)
}

const guessJob = (nodes: readonly Node[]): { job_id?: string; status?: string } => {
  const flat = nodes.filter(({ steps }) => steps.length <= 3 && !steps.includes(each))
  const id =
    flat.find((node) => /^(task|job|operation|prediction|generation|video)_?id$/i.test(nameOf(node))) ??
    flat.find((node) => /^(id|request_?id|name)$/i.test(nameOf(node)) && node.values.every(isWord))
  const status = flat.find((node) => /status|state/i.test(nameOf(node)) && node.values.every(isWord))
  return {
    ...(id === undefined ? {} : { job_id: pathOf(id.steps) }),
    ...(status === undefined ? {} : { status: pathOf(status.steps) }),
  }
}

type Shapes = {
  embedding: string | null
  ranking: string | null
  images: string | null
  video: string | null
}

const categoryOf = (shapes: Shapes, hasText: boolean, hasCalls: boolean, hasJob: boolean): string => {
  if (shapes.ranking !== null) return 'rerank'
  if (shapes.embedding !== null) return 'embedding'
  if (hasCalls) return 'text'
  if (shapes.video !== null) return 'text-to-video'
  if (shapes.images !== null) return 'text-to-image'
  return hasText || !hasJob ? 'text' : 'text-to-video'
}

/** Paths that a category has no use for would only read what is not there to be read. */
const wanted: Readonly<Record<string, readonly (keyof Paths)[]>> = {
  embedding: ['embedding', 'model', 'error', 'usage'],
  rerank: ['ranking', 'model', 'error', 'usage'],
  'text-to-image': ['images', 'job_id', 'status', 'model', 'error', 'usage'],
  'image-edit': ['images', 'job_id', 'status', 'model', 'error', 'usage'],
  'text-to-video': ['video', 'job_id', 'status', 'model', 'error', 'usage'],
  'speech-to-text': ['text', 'model', 'error', 'usage'],
}
const wantedOfTexts: readonly (keyof Paths)[] = [
  'text',
  'reasoning',
  'tool_calls',
  'finish',
  'model',
  'error',
  'usage',
]

const errorPath = (documents: readonly unknown[]): string | null =>
  documents.some((one) => isObject(one) && Object.hasOwn(one, 'error') && errorOf(one.error) === null)
    ? 'error'
    : null

const present = (found: Record<string, unknown>, names: readonly string[]): Paths =>
  Object.fromEntries(names.flatMap((name) => (found[name] == null ? [] : [[name, found[name]]]))) as Paths

const isWithin = (node: Node, outer: Node): boolean =>
  outer.steps.length > 0 &&
  outer.steps.every((step, at) => node.steps[at] === step) &&
  outer.tags.every(({ value }, at) => node.tags[at]?.value === value)

/** Paths by the names and shapes of what is there. `documents` is one whole answer, or the events of a stream. */
export const guessPaths = (documents: readonly unknown[], category: string | undefined): Guessed => {
  const nodes = nodesOf(documents)
  const streamed = documents.length > 1
  const calls = guessCalls(nodes, streamed)
  const inCalls = (node: Node): boolean => calls !== null && isWithin(node, calls.node)
  const texts = guessTexts(nodes, documents.length, inCalls)
  const shapes = {
    embedding: guessEmbedding(nodes),
    ranking: guessRanking(nodes),
    images: guessImages(nodes),
    video: guessVideo(nodes),
  }
  const job = guessJob(nodes)
  const hasJob = job.job_id !== undefined && job.status !== undefined
  const kind = category ?? categoryOf(shapes, texts.text !== null, calls !== null, hasJob)
  const done = shapes.images !== null || shapes.video !== null
  const found = {
    ...shapes,
    ...(hasJob && !done ? job : {}),
    text: texts.text?.path,
    reasoning: texts.reasoning?.path,
    tool_calls: calls?.path,
    finish: guessFinish(nodes, documents.length),
    model: guessModel(nodes),
    error: errorPath(documents),
    usage: guessUsage(nodes),
  }
  const paths = present(found, wanted[kind] ?? wantedOfTexts)
  const unsure: string[] = []
  if (paths.text !== undefined && texts.text?.sure === false)
    unsure.push(`text: ${paths.text} was taken for its length and its words; its name does not say so`)
  if (paths.text !== undefined && texts.close !== null)
    unsure.push(`text: ${pathOf(texts.close.steps)} could be it as well`)
  if (paths.usage === undefined)
    unsure.push('usage: nothing was found that counts tokens; they will be estimated')
  if (paths.finish === undefined && (wanted[kind] ?? wantedOfTexts).includes('finish'))
    unsure.push('finish: nothing says why the answer ended; every answer counts as a full one')
  return { category: kind, paths, unsure }
}
