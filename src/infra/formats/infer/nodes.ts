/** What a pasted answer, or the events of a stream, hold: each place once, with all values seen there. */

export const each = Symbol('each element of a list')
export type NodeStep = string | typeof each

/** What tells objects of one list (or events) apart, such as `type: text`. `depth` is how many steps lead to them. */
export type Tag = { depth: number; name: string; value: string }
export type Node = {
  steps: readonly NodeStep[]
  /** Those of the objects it is in, the outermost first. */
  tags: readonly Tag[]
  values: unknown[]
  /** In how many of the documents it is, and the last of them, counted from 0. */
  seen: number
  last: number
}

const mostNodes = 5000
const mostDepth = 40
const mostElements = 64
const tagNames = ['type', 'event', 'kind', 'event_type']

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const tagOf = (value: Record<string, unknown>, depth: number): Tag | null => {
  const name = tagNames.find((one) => Object.hasOwn(value, one) && typeof value[one] === 'string')
  return name === undefined ? null : { depth, name, value: String(value[name]).slice(0, 100) }
}

const idOf = (steps: readonly NodeStep[], tags: readonly Tag[]): string =>
  JSON.stringify([steps.map((step) => (step === each ? 0 : step)), tags])

/** `documents` is one whole answer, or many events. */
export const nodesOf = (documents: readonly unknown[]): Node[] => {
  const nodes = new Map<string, Node>()
  const add = (steps: readonly NodeStep[], tags: readonly Tag[], value: unknown, at: number): boolean => {
    const id = idOf(steps, tags)
    const known = nodes.get(id)
    if (known === undefined && nodes.size >= mostNodes) return false
    const node = known ?? { steps, tags, values: [], seen: 0, last: -1 }
    nodes.set(id, node)
    node.values.push(value)
    if (node.last !== at) node.seen += 1
    node.last = at
    return true
  }
  const walk = (value: unknown, steps: readonly NodeStep[], tags: readonly Tag[], at: number): void => {
    const own =
      isObject(value) && (steps.length === 0 || steps.at(-1) === each) ? tagOf(value, steps.length) : null
    const inner = own === null ? tags : [...tags, own]
    if (steps.length > 0 && !add(steps, inner, value, at)) return
    if (steps.length >= mostDepth) return
    if (Array.isArray(value)) {
      if (typeof value[0] === 'number') return
      for (const one of value.slice(0, mostElements)) walk(one, [...steps, each], tags, at)
    } else if (isObject(value)) {
      for (const [name, one] of Object.entries(value).slice(0, 200)) walk(one, [...steps, name], inner, at)
    }
  }
  documents.forEach((document, at) => {
    walk(document, [], [], at)
  })
  return [...nodes.values()]
}

/** The name of the member that a node is, or that the list is which it is an element of. */
export const nameOf = ({ steps }: Pick<Node, 'steps'>): string => {
  const name = steps.findLast((step) => step !== each)
  return typeof name === 'string' ? name : ''
}

/** A name as words: `promptTokenCount` and `prompt_token-count` are the same three. */
export const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')

const identifier = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name)

/** The tag as an expression over the object that has it. */
export const testOf = ({ name, value }: Tag): string =>
  `${identifier(name)}=='${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** Lists whose elements are pieces of one thing, not alternatives. */
const pieceLists =
  /^(content|parts?|segments?|chunks?|blocks?|items?|sentences?|lines?|paragraphs?|pieces?)$/i

/**
 * Steps as JMESPath: the first element of a list of alternatives, all of a list of pieces. `every`: all of each list.
 * `conditions` are put to the elements of the lists at their depths.
 */
export const pathOf = (
  steps: readonly NodeStep[],
  { every = false, conditions = [] }: { every?: boolean; conditions?: readonly Tag[] } = {},
): string =>
  steps.reduce<string>((path, step, at) => {
    if (step !== each) return path === '' ? identifier(step) : `${path}.${identifier(step)}`
    const condition = conditions.find(({ depth }) => depth === at + 1)
    if (condition !== undefined) return `${path}[?${testOf(condition)}]`
    const before = steps[at - 1]
    return `${path}${every || (typeof before === 'string' && pieceLists.test(before)) ? '[]' : '[0]'}`
  }, '')
