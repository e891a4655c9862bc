import { isJsonObject } from '../../../infra/lib/json-text.ts'
import {
  describeNode,
  eachElement,
  type ResponseNode,
  readNodeWords,
  toJmesPath,
  toNodePath,
} from './response-nodes.ts'

/** Guesses parts by the shape of a list: vectors, rankings, calls, images. */

const isVector = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 1 && value.every((one) => typeof one === 'number')

/** A list of vectors, or of objects with one each, or one vector. */
export const guessEmbedding = (nodes: readonly ResponseNode[]): string | null => {
  const steps = nodes.find(({ values }) => values.every(isVector))?.steps
  if (steps === undefined) return null
  if (steps.at(-1) === eachElement) return toJmesPath(steps.slice(0, -1), { every: true })
  const holder = nodes.find(({ steps: own }) => own.length === steps.length - 1 && own.at(-1) === eachElement)
  const entries = holder?.values.filter(isJsonObject) ?? []
  if (entries.length === 0 || !entries.every(({ index }) => Number.isInteger(index)))
    return toJmesPath(steps, { every: true })
  const list = toJmesPath(steps.slice(0, -2), { every: true }) || '@'
  return `sort_by(${list}, &index)[].${toJmesPath(steps.slice(-1))}`
}

const findMember = (
  entry: Record<string, unknown>,
  names: RegExp,
  isRight: (value: unknown) => boolean,
): string | undefined => Object.keys(entry).find((name) => names.test(name) && isRight(entry[name]))

/** The path to a list of objects with an index and a score; null when there is none. */
export const guessRanking = (nodes: readonly ResponseNode[]): string | null => {
  for (const { steps, values } of nodes) {
    const [first] = values
    if (steps.at(-1) !== eachElement || !isJsonObject(first) || !values.every(isJsonObject)) continue
    const index = findMember(first, /^(index|idx|position|document_index|doc)$/i, Number.isInteger)
    const score = findMember(first, /score|relevance|similarity/i, (value) => typeof value === 'number')
    if (index === undefined || score === undefined) continue
    return `${toJmesPath(steps.slice(0, -1), { every: true })}[].{index: ${toJmesPath([index])}, score: ${toJmesPath([score])}}`
  }
  return null
}

/** The first of the names, in snake case or in camel case, that has a value. */
const findName = (value: Record<string, unknown>, ...names: string[]): string | undefined =>
  names
    .flatMap((name) => [name, name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())])
    .find((name) => Object.hasOwn(value, name) && value[name] !== null)

/** The steps to the members of what may be a call: name and arguments are in it, or in an object of their own within it. */
const findCallMembers = (value: Record<string, unknown>) => {
  const inner = findName(value, 'function', 'tool', 'function_call', 'call', 'tool_use') ?? ''
  const nested = value[inner]
  const [body, prefix] = isJsonObject(nested) ? [nested, [inner]] : [value, []]
  const name = findName(body, 'name', 'tool', 'tool_name', 'function', 'function_name')
  const args = findName(body, 'arguments', 'args', 'input', 'parameters', 'params', 'arguments_json', 'with')
  if (name === undefined || typeof body[name] !== 'string' || args === undefined) return null
  const id = findName(value, 'id', 'call_id', 'tool_call_id', 'tool_use_id')
  const index = findName(value, 'index')
  return {
    index: index === undefined ? [] : [index],
    id: id === undefined ? [] : [id],
    name: [...prefix, name],
    arguments: [...prefix, args],
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
    if (!/tool|function|call|action|invo/i.test(`${describeNode(node)} ${toJmesPath(call.name)}`)) continue
    const fields = Object.entries(call)
      .filter(([name, { length }]) => length > 0 && (streamed || name !== 'index'))
      .map(([name, member]) => `${name}: ${toJmesPath(member)}`)
    const conditions = tags.filter(({ depth }) => depth === steps.length)
    const all = steps.at(-1) === eachElement && conditions.length === 0
    const place = all ? `${toJmesPath(steps.slice(0, -1))}[]` : toJmesPath(steps, { conditions })
    return { path: `${place}.{${fields.join(', ')}}`, node }
  }
  return null
}

const isAddress = (value: unknown, ending: RegExp): boolean =>
  typeof value === 'string' && /^(https?|data|gs|s3|oss):/i.test(value) && ending.test(value)
const isBase64 = (value: unknown): boolean =>
  typeof value === 'string' && value.length >= 16 && /^[A-Za-z0-9+/_-]+={0,2}$/.test(value)

/** Values with another ending, and base64, count where the names on the way to them say what they are. */
const findMediaNode = (nodes: readonly ResponseNode[], names: RegExp, ending: RegExp) =>
  nodes.find((node) => {
    const isNamed = names.test(describeNode(node)) && !/\b(id|model)\b/.test(readNodeWords(node))
    return node.values.every((value) =>
      isNamed ? isAddress(value, /./) || isBase64(value) : isAddress(value, ending),
    )
  })

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
  return toNodePath(findMediaNode(nodes, /video|movie|clip|film/i, /^data:video|\.(mp4|webm|mov|mkv)(\?|$)/i))
}
