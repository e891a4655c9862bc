import { each, isObject, type Node, nameOf, pathOf, wordsOf } from './nodes.ts'

/** Parts that are told by the shape of a list: vectors, rankings, calls, pictures. */

const isVector = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 1 && value.every((one) => typeof one === 'number')

/** A list of vectors, or of objects with one each, or one vector. */
export const guessEmbedding = (nodes: readonly Node[]): string | null => {
  const node = nodes.find(({ values }) => values.length > 0 && values.every(isVector))
  if (node === undefined) return null
  const { steps } = node
  const holder = nodes.find(({ steps: own }) => own.length === steps.length - 1 && own.at(-1) === each)
  const entries = holder?.values.filter(isObject) ?? []
  if (
    typeof steps.at(-1) === 'string' &&
    entries.length > 0 &&
    entries.every((one) => Number.isInteger(one.index))
  ) {
    const list = steps.slice(0, -2)
    const name = pathOf(steps.slice(-1))
    return `sort_by(${list.length === 0 ? '@' : pathOf(list, { every: true })}, &index)[].${name}`
  }
  return steps.at(-1) === each ? pathOf(steps.slice(0, -1), { every: true }) : pathOf(steps, { every: true })
}

const scoreName = (entry: Record<string, unknown>): string | undefined =>
  Object.keys(entry).find(
    (name) => /score|relevance|similarity/i.test(name) && typeof entry[name] === 'number',
  )
const indexName = (entry: Record<string, unknown>): string | undefined =>
  Object.keys(entry).find(
    (name) => /^(index|idx|position|document_index|doc)$/i.test(name) && Number.isInteger(entry[name]),
  )

export const guessRanking = (nodes: readonly Node[]): string | null => {
  for (const { steps, values } of nodes) {
    if (steps.at(-1) !== each || !values.every(isObject)) continue
    const [first] = values
    const [index, score] = [indexName(first ?? {}), scoreName(first ?? {})]
    if (index === undefined || score === undefined) continue
    return `${pathOf(steps.slice(0, -1), { every: true })}[].{index: ${pathOf([index])}, score: ${pathOf([score])}}`
  }
  return null
}

type Members = { id: string | null; index: string | null; name: string; args: string | null }
const within = (value: Record<string, unknown>, names: readonly string[]): string | undefined =>
  names.find((name) => Object.hasOwn(value, name) && value[name] !== null)

/** Where name and arguments stand in what may be a call: in it, or in an object of its own within it. */
const membersOf = (value: Record<string, unknown>): Members | null => {
  const inner = within(value, [
    'function',
    'tool',
    'functionCall',
    'function_call',
    'call',
    'toolUse',
    'tool_use',
  ])
  const body =
    inner !== undefined && isObject(value[inner]) ? (value[inner] as Record<string, unknown>) : value
  const prefix = body === value || inner === undefined ? [] : [inner]
  const name = within(body, ['name', 'tool', 'tool_name', 'toolName', 'function', 'function_name'])
  const args = within(body, ['arguments', 'args', 'input', 'parameters', 'params', 'arguments_json', 'with'])
  if (name === undefined || typeof body[name] !== 'string' || args === undefined) return null
  const id = within(value, ['id', 'call_id', 'tool_call_id', 'callId', 'tool_use_id'])
  const index = within(value, ['index'])
  return {
    id: id === undefined ? null : pathOf([id]),
    index: index === undefined ? null : pathOf([index]),
    name: pathOf([...prefix, name]),
    args: pathOf([...prefix, args]),
  }
}

/** `streamed` pieces need their index. */
export const guessCalls = (
  nodes: readonly Node[],
  streamed: boolean,
): { path: string; node: Node } | null => {
  for (const node of nodes) {
    const { steps, values, tags } = node
    const call = values
      .filter(isObject)
      .map(membersOf)
      .find((members) => members !== null)
    if (call == null) continue
    const named = [
      ...steps.map((step) => (step === each ? '' : step)),
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
    const list = steps.at(-1) === each
    const conditions = list ? tags.filter(({ depth }) => depth === steps.length) : []
    const plain = list ? `${pathOf(steps.slice(0, -1))}[]` : pathOf(steps)
    const place = conditions.length > 0 ? pathOf(steps, { conditions }) : plain
    return { path: `${place}.{${fields}}`, node }
  }
  return null
}

const isAddress = (value: unknown, ending: RegExp): boolean =>
  typeof value === 'string' && /^(https?|data|gs|s3|oss):/i.test(value) && ending.test(value)
const isBase64 = (value: unknown): boolean =>
  typeof value === 'string' && value.length >= 16 && /^[A-Za-z0-9+/_-]+={0,2}$/.test(value)

const mediaNode = (nodes: readonly Node[], names: RegExp, ending: RegExp): Node | undefined => {
  const named = (node: Node): boolean =>
    names.test(
      [...node.steps.map((step) => (step === each ? '' : step)), ...node.tags.map(({ value }) => value)].join(
        ' ',
      ),
    )
  const held = (node: Node): boolean =>
    node.values.every((value) => isAddress(value, ending)) ||
    (named(node) &&
      node.values.every((value) => isAddress(value, /./) || isBase64(value)) &&
      !wordsOf(nameOf(node)).some((word) => word === 'id' || word === 'model'))
  return nodes.find((node) => node.values.length > 0 && held(node))
}

export const guessImages = (nodes: readonly Node[]): string | null => {
  const ending = /^data:image|\.(png|jpe?g|webp|gif|bmp|avif)(\?|$)/i
  const node = mediaNode(nodes, /image|img|picture|photo|art|b64/i, ending)
  if (node === undefined) return null
  const { steps } = node
  return pathOf(steps.at(-1) === each ? steps.slice(0, -1) : steps, { every: true })
}

export const guessVideo = (nodes: readonly Node[]): string | null => {
  const node = mediaNode(nodes, /video|movie|clip|film/i, /^data:video|\.(mp4|webm|mov|mkv)(\?|$)/i)
  return node === undefined ? null : pathOf(node.steps)
}
