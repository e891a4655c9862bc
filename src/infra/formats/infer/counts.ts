import type { Paths } from '../../../state/registry/response-format.ts'
import { type Counts, countNames, countOf } from '../usage.ts'
import { type Node, nameOf, pathOf, wordsOf } from './nodes.ts'

/** Which numbers are tokens, by their names and those of the object that holds them. */

const kinds: readonly (readonly [keyof Counts, RegExp])[] = [
  ['cached_tokens', /\b(cached?|hit)\b/],
  ['reasoning_tokens', /\b(reasoning|thinking|thoughts?)\b/],
  ['prompt_tokens', /\b(prompt|input|in|request|question|context|sent|read|consumed)\b/],
  [
    'completion_tokens',
    /\b(completion|output|out|generated|response|candidates?|answer|written|produced|received)\b/,
  ],
  ['total_tokens', /\b(total|all|sum|overall|billed|used)\b/],
]
const kindOf = (words: string): keyof Counts | undefined => kinds.find(([, names]) => names.test(words))?.[0]

const parentOf = ({ steps }: Node): string => wordsOf(nameOf({ steps: steps.slice(0, -1) })).join(' ')

const isCount = (own: string, parent: string): boolean =>
  /\btokens?\b/.test(own) ? true : /\b(tokens?|usage)\b/.test(parent) || /\beval count\b/.test(own)

const kindOfNode = (node: Node): keyof Counts | undefined => {
  const own = wordsOf(nameOf(node)).join(' ')
  const parent = parentOf(node)
  if (/\b(ms|duration|time|seconds|cost|price|limit|max|miss|creation|per)\b/.test(own)) return undefined
  if (!isCount(own, parent)) return undefined
  // Ollama's names
  if (own === 'eval count') return 'completion_tokens'
  return kindOf(own) ?? (/\btokens?\b/.test(own) && !/detail/.test(parent) ? kindOf(parent) : undefined)
}

/** Null where there is nothing that counts tokens. */
export const guessUsage = (nodes: readonly Node[]): Exclude<Paths['usage'], string> | null => {
  const found = new Map<keyof Counts, Node>()
  const counts = nodes.filter(
    ({ values, steps }) => steps.length > 0 && values.some((one) => countOf(one) !== null),
  )
  for (const node of counts.toSorted((a, b) => a.steps.length - b.steps.length)) {
    const kind = kindOfNode(node)
    if (kind !== undefined && !found.has(kind)) found.set(kind, node)
  }
  const entries = countNames.flatMap((name) => {
    const node = found.get(name)
    return node === undefined ? [] : [[name, pathOf(node.steps)] as const]
  })
  return entries.length === 0 ? null : Object.fromEntries(entries)
}
