import { isJsonObject } from '../../../infra/lib/json-text.ts'
import {
  eachElement,
  type ResponseNode,
  readNodeName,
  splitNameIntoWords,
  toJmesPath,
} from './response-nodes.ts'

/** Guesses parts by the shape of a list: vectors, rankings, calls, images. */

const isVector = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 1 && value.every((one) => typeof one === 'number')

/** A list of vectors, or of objects with one each, or one vector. */
export const guessEmbedding = (nodes: readonly ResponseNode[]): string | null => {
  const node = nodes.find(({ values }) => values.length > 0 && values.every(isVector))
  if (node === undefined) return null
  const { steps } = node
  const holder = nodes.find(({ steps: own }) => own.length === steps.length - 1 && own.at(-1) === eachElement)
  const entries = holder?.values.filter(isJsonObject) ?? []
  if (
    typeof steps.at(-1) === 'string' &&
    entries.length > 0 &&
    entries.every((one) => Number.isInteger(one.index))
  ) {
    const list = steps.slice(0, -2)
    const name = toJmesPath(steps.slice(-1))
    return `sort_by(${list.length === 0 ? '@' : toJmesPath(list, { every: true })}, &index)[].${name}`
  }
  return steps.at(-1) === eachElement
    ? toJmesPath(steps.slice(0, -1), { every: true })
    : toJmesPath(steps, { every: true })
}

const findScoreName = (entry: Record<string, unknown>): string | undefined =>
  Object.keys(entry).find(
    (name) => /score|relevance|similarity/i.test(name) && typeof entry[name] === 'number',
  )
const findIndexName = (entry: Record<string, unknown>): string | undefined =>
  Object.keys(entry).find(
    (name) => /^(index|idx|position|document_index|doc)$/i.test(name) && Number.isInteger(entry[name]),
  )

/** The path to a list of objects with an index and a score; null when there is none. */
export const guessRanking = (nodes: readonly ResponseNode[]): string | null => {
  for (const { steps, values } of nodes) {
    if (steps.at(-1) !== eachElement || !values.every(isJsonObject)) continue
    const [first] = values
    const [index, score] = [findIndexName(first ?? {}), findScoreName(first ?? {})]
    if (index === undefined || score === undefined) continue
    return `${toJmesPath(steps.slice(0, -1), { every: true })}[].{index: ${toJmesPath([index])}, score: ${toJmesPath([score])}}`
  }
  return null
}

type Members = { id: string | null; index: string | null; name: string; args: string | null }
const findName = (value: Record<string, unknown>, names: readonly string[]): string | undefined =>
  names.find((name) => Object.hasOwn(value, name) && value[name] !== null)

/** Where name and arguments stand in what may be a call: in it, or in an object of its own within it. */
const findCallMembers = (value: Record<string, unknown>): Members | null => {
  const inner = findName(value, [
    'function',
    'tool',
    'functionCall',
    'function_call',
    'call',
    'toolUse',
    'tool_use',
  ])
  const body =
    inner !== undefined && isJsonObject(value[inner]) ? (value[inner] as Record<string, unknown>) : value
  const prefix = body === value || inner === undefined ? [] : [inner]
  const name = findName(body, ['name', 'tool', 'tool_name', 'toolName', 'function', 'function_name'])
  const args = findName(body, [
    'arguments',
    'args',
    'input',
    'parameters',
    'params',
    'arguments_json',
    'with',
  ])
  if (name === undefined || typeof body[name] !== 'string' || args === undefined) return null
  const id = findName(value, ['id', 'call_id', 'tool_call_id', 'callId', 'tool_use_id'])
  const index = findName(value, ['index'])
  return {
    id: id === undefined ? null : toJmesPath([id]),
    index: index === undefined ? null : toJmesPath([index]),
    name: toJmesPath([...prefix, name]),
    args: toJmesPath([...prefix, args]),
  }
}

/** Chunks of a stream (`streamed`) need their index. */
export const guessCalls = (
  nodes: readonly ResponseNode[],
  streamed: boolean,
): { path: string; node: ResponseNode } | null => {
  for (const node of nodes) {
    const { steps, values, tags } = node
    const call = values
      .filter(isJsonObject)
      .map(findCallMembers)
      .find((members) => members !== null)
    if (call == null) continue
    const named = [
      ...steps.map((step) => (step === eachElement ? '' : step)),
      ...tags.map(({ value }) => value),
      call.name,
    ].join(' ')
    if (!/tool|function|call|action|invo/i.test(named)) continue
    const fields = [
      ...(streamed && call.index !== null ? [`index: ${call.index}`] : []),
      ...(call.id === null ? [] : [`id: ${call.id}`]),
      `name: ${call.name}`,
      `arguments: ${call.args}`,
    ].join(', ')
    const list = steps.at(-1) === eachElement
    const conditions = list ? tags.filter(({ depth }) => depth === steps.length) : []
    const plain = list ? `${toJmesPath(steps.slice(0, -1))}[]` : toJmesPath(steps)
    const place = conditions.length > 0 ? toJmesPath(steps, { conditions }) : plain
    return { path: `${place}.{${fields}}`, node }
  }
  return null
}

const isAddress = (value: unknown, ending: RegExp): boolean =>
  typeof value === 'string' && /^(https?|data|gs|s3|oss):/i.test(value) && ending.test(value)
const isBase64 = (value: unknown): boolean =>
  typeof value === 'string' && value.length >= 16 && /^[A-Za-z0-9+/_-]+={0,2}$/.test(value)

const findMediaNode = (
  nodes: readonly ResponseNode[],
  names: RegExp,
  ending: RegExp,
): ResponseNode | undefined => {
  const named = (node: ResponseNode): boolean =>
    names.test(
      [
        ...node.steps.map((step) => (step === eachElement ? '' : step)),
        ...node.tags.map(({ value }) => value),
      ].join(' '),
    )
  const held = (node: ResponseNode): boolean =>
    node.values.every((value) => isAddress(value, ending)) ||
    (named(node) &&
      node.values.every((value) => isAddress(value, /./) || isBase64(value)) &&
      !splitNameIntoWords(readNodeName(node)).some((word) => word === 'id' || word === 'model'))
  return nodes.find((node) => node.values.length > 0 && held(node))
}

/** The path to URLs or base64 of images; null when there is none. */
export const guessImages = (nodes: readonly ResponseNode[]): string | null => {
  const ending = /^data:image|\.(png|jpe?g|webp|gif|bmp|avif)(\?|$)/i
  const node = findMediaNode(nodes, /image|img|picture|photo|art|b64/i, ending)
  if (node === undefined) return null
  const { steps } = node
  return toJmesPath(steps.at(-1) === eachElement ? steps.slice(0, -1) : steps, { every: true })
}

/** The path to the URL of a video; null when there is none. */
export const guessVideo = (nodes: readonly ResponseNode[]): string | null => {
  const node = findMediaNode(nodes, /video|movie|clip|film/i, /^data:video|\.(mp4|webm|mov|mkv)(\?|$)/i)
  return node === undefined ? null : toJmesPath(node.steps)
}
