import { isJsonObject } from '../../../infra/lib/json-text.ts'

/** The values in a pasted response, or in the events of a stream: one node for each path, with all its values. */

/** The step into the elements of a list. */
export const eachElement = Symbol('each element of a list')
/** The name of a member, or `eachElement`. */
export type NodeStep = string | typeof eachElement

/** Distinguishes objects of one list (or events), such as `type: text`. `depth` is the number of steps to them. */
export type NodeTag = { depth: number; name: string; value: string }
/** One path and its values. */
export type ResponseNode = {
  steps: readonly NodeStep[]
  /** Tags of the objects around it, the outermost first. */
  tags: readonly NodeTag[]
  values: unknown[]
  /** The number of documents that have it, and the last of them, counted from 0. */
  documentCount: number
  lastDocument: number
}

const maxNodes = 5000
const maxDepth = 40
const maxElements = 64
const tagNames = ['type', 'event', 'kind', 'event_type']

const findTag = (value: Record<string, unknown>, depth: number): NodeTag | null => {
  const name = tagNames.find((one) => Object.hasOwn(value, one) && typeof value[one] === 'string')
  return name === undefined ? null : { depth, name, value: String(value[name]).slice(0, 100) }
}

const toNodeId = (steps: readonly NodeStep[], tags: readonly NodeTag[]): string =>
  JSON.stringify([steps.map((step) => (step === eachElement ? 0 : step)), tags])

/** `documents` is one whole response, or many events. */
export const collectNodes = (documents: readonly unknown[]): ResponseNode[] => {
  const nodes = new Map<string, ResponseNode>()
  const add = (steps: readonly NodeStep[], tags: readonly NodeTag[], value: unknown, at: number): boolean => {
    const id = toNodeId(steps, tags)
    const existing = nodes.get(id)
    if (existing === undefined && nodes.size >= maxNodes) return false
    const node = existing ?? { steps, tags, values: [], documentCount: 0, lastDocument: -1 }
    nodes.set(id, node)
    node.values.push(value)
    if (node.lastDocument !== at) node.documentCount += 1
    node.lastDocument = at
    return true
  }
  const walk = (value: unknown, steps: readonly NodeStep[], tags: readonly NodeTag[], at: number): void => {
    const own =
      isJsonObject(value) && (steps.length === 0 || steps.at(-1) === eachElement)
        ? findTag(value, steps.length)
        : null
    const inner = own === null ? tags : [...tags, own]
    if (steps.length > 0 && !add(steps, inner, value, at)) return
    if (steps.length >= maxDepth) return
    if (Array.isArray(value)) {
      if (typeof value[0] === 'number') return
      for (const one of value.slice(0, maxElements)) walk(one, [...steps, eachElement], tags, at)
    } else if (isJsonObject(value)) {
      for (const [name, one] of Object.entries(value).slice(0, 200)) walk(one, [...steps, name], inner, at)
    }
  }
  documents.forEach((document, at) => {
    walk(document, [], [], at)
  })
  return [...nodes.values()]
}

/** The name of the node's member; for an element, that of its list. */
export const readNodeName = ({ steps }: Pick<ResponseNode, 'steps'>): string => {
  const name = steps.findLast((step) => step !== eachElement)
  return typeof name === 'string' ? name : ''
}

/** The names on the way to the node and the values of its tags, as one text. */
export const describeNode = ({ steps, tags }: ResponseNode): string =>
  [...steps.filter((step) => step !== eachElement), ...tags.map(({ value }) => value)].join(' ')

/** Whether the first steps of both are the same; by default all of the second. */
export const startsAlike = (node: ResponseNode, other: ResponseNode, depth = other.steps.length): boolean =>
  node.steps.length >= depth && other.steps.slice(0, depth).every((step, at) => step === node.steps[at])

/** A name as words: `promptTokenCount` and `prompt_token-count` have the same three. */
export const splitNameIntoWords = (name: string): string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')

/** The name of the node's member in words. */
export const readNodeWords = (node: Pick<ResponseNode, 'steps'>): string =>
  splitNameIntoWords(readNodeName(node)).join(' ')

const toIdentifier = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name)

/** The tag as an expression over the object that has it. */
export const toTagCondition = ({ name, value }: NodeTag): string =>
  `${toIdentifier(name)}=='${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** Lists whose elements are parts of one text, not alternatives. */
const partLists = /^(content|parts?|segments?|chunks?|blocks?|items?|sentences?|lines?|paragraphs?|pieces?)$/i

/**
 * Steps as JMESPath: the first element of a list of alternatives, all elements of a list of parts. `every`: all of each list.
 * `conditions` filter the elements of the lists at their depths.
 */
export const toJmesPath = (
  steps: readonly NodeStep[],
  { every = false, conditions = [] }: { every?: boolean; conditions?: readonly NodeTag[] } = {},
): string =>
  steps.reduce<string>((path, step, at) => {
    if (step !== eachElement) return path === '' ? toIdentifier(step) : `${path}.${toIdentifier(step)}`
    const condition = conditions.find(({ depth }) => depth === at + 1)
    if (condition !== undefined) return `${path}[?${toTagCondition(condition)}]`
    const before = steps[at - 1]
    return `${path}${every || (typeof before === 'string' && partLists.test(before)) ? '[]' : '[0]'}`
  }, '')

/** The path to the node; null without one. */
export const toNodePath = (node: ResponseNode | undefined): string | null =>
  node === undefined ? null : toJmesPath(node.steps)
