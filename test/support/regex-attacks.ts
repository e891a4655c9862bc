/** Makes texts from a regular expression that a backtracking engine needs more than linear time for, where there are any. */

/** A part of a pattern; `opening` is what stands after the bracket: `?:`, `?<name>`, `?=` and so on, or nothing. */
export type Node =
  | { type: 'set'; raw: string }
  | { type: 'empty'; raw: string }
  | { type: 'group'; choices: Node[][]; opening: string; isLook: boolean }
  | { type: 'repeat'; min: number; max: number; isLazy: boolean; of: Node }

/** From here on a repetition counts as unlimited: its factor alone makes a scan of 1 MB slow. */
const manyTimes = 24

/** The syntax tree of a pattern. What matches one character is kept as its source. */
export const parsePattern = (pattern: string): Node[][] => {
  let at = 0
  const readSet = (): string => {
    const start = at
    if (pattern[at] === '\\') {
      at +=
        /^\\(?:k<[^>]*>|u\{[^}]*\}|[pPk][{<][^}>]*[}>]|u[\da-f]{4}|x[\da-f]{2}|c[a-z])/i.exec(
          pattern.slice(at),
        )?.[0].length ?? 2
    } else if (pattern[at] === '[') {
      at += 1
      while (pattern[at] !== ']') at += pattern[at] === '\\' ? 2 : 1
      at += 1
    } else at += (pattern.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
    return pattern.slice(start, at)
  }
  const readAtom = (): Node => {
    if (pattern[at] === '(') {
      const opening = /^\((?:\?(?:[:=!]|<[=!]|<[^>]*>))?/.exec(pattern.slice(at))?.[0] ?? '('
      at += opening.length
      const choices = readChoices()
      at += 1
      return { type: 'group', choices, opening: opening.slice(1), isLook: /[=!]$/.test(opening) }
    }
    const raw = readSet()
    const isEmpty = raw === '^' || raw === '$' || /^\\[bBk\d]/.test(raw)
    return isEmpty ? { type: 'empty', raw } : { type: 'set', raw }
  }
  const readQuantified = (): Node => {
    const of = readAtom()
    const quantifier = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(pattern.slice(at))
    if (quantifier === null) return of
    at += quantifier[0].length
    const [text, low, comma, high] = quantifier
    const min = low === undefined ? (text[0] === '+' ? 1 : 0) : Number(low)
    const unlimited = low === undefined ? text[0] !== '?' : comma === ',' && high === ''
    const max = unlimited ? Number.POSITIVE_INFINITY : low === undefined ? 1 : Number(high || low)
    return { type: 'repeat', min, max, isLazy: text.length > 1 && text.endsWith('?'), of }
  }
  const readChoices = (): Node[][] => {
    const choices: Node[][] = [[]]
    while (at < pattern.length && pattern[at] !== ')') {
      if (pattern[at] === '|') {
        at += 1
        choices.push([])
      } else choices.at(-1)?.push(readQuantified())
    }
    return choices
  }
  return readChoices()
}

const common = [
  ' ',
  '\t',
  '\n',
  '\r',
  'a',
  'A',
  '0',
  '_',
  '-',
  '.',
  ',',
  '/',
  '"',
  '<',
  '漢',
  'é',
  '\0',
  '!',
  ']',
  '}',
]

/** One character for each way in which the sets of a pattern, and these, tell characters apart. */
const listAlphabet = (
  sets: readonly string[],
  more: readonly RegExp[],
  flags: string,
): Map<string, Set<string>> => {
  const own = sets.flatMap((raw) => {
    const plain = raw.replace(/\\[dwsDWSbB]|\\[pP]\{[^}]*\}|^\[\^?|\]$/g, '')
    return [...plain.replace(/\\u([\da-f]{4})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))]
  })
  const matchers = [...new Set(sets)].map(
    (raw) => [raw, new RegExp(`^${raw}$`, flags.replace(/[gmy]/g, ''))] as const,
  )
  const bySignature = new Map<string, string>()
  for (const char of [...common, ...own]) {
    const signature = [...matchers.map(([, matcher]) => matcher), ...more].map((one) => one.test(char)).join()
    if (!bySignature.has(signature)) bySignature.set(signature, char)
  }
  const chars = [...bySignature.values()]
  return new Map(matchers.map(([raw, matcher]) => [raw, new Set(chars.filter((char) => matcher.test(char)))]))
}

const listSets = (choices: readonly Node[][]): string[] =>
  choices.flat().flatMap((node) => {
    if (node.type === 'set') return [node.raw]
    if (node.type === 'group') return listSets(node.choices)
    return node.type === 'repeat' ? listSets([[node.of]]) : []
  })

/** A part of an attack: `prefix` once, then `pump` again and again. */
export type Attack = { prefix: string; pump: string }

/** The parts of which attacks on a pattern are made; none: the pattern repeats nothing often. */
export const listAttacks = (pattern: string, flags: string): Attack[] => {
  const tree = parsePattern(pattern)
  // what anchors and boundaries tell apart
  const kinds = [...(flags.includes('m') ? [/[\n\r]/] : []), ...(/\\b/i.test(pattern) ? [/\w/] : [])]
  const alphabet = listAlphabet(listSets(tree), kinds, flags)
  const isBoundary = (before: string, after: string): boolean =>
    kinds.some((kind) => kind.test(before.at(-1) ?? '') !== kind.test(after[0] ?? ''))
  const attacks = new Map<string, Attack>()
  const add = (prefix: string, pump: string): void => {
    if (pump !== '') attacks.set(JSON.stringify([prefix, pump]), { prefix, pump })
  }
  const toWord = (node: Node, choice = 0): string => {
    if (node.type === 'set') return alphabet.get(node.raw)?.values().next().value ?? ''
    if (node.type === 'repeat') return toWord(node.of, choice).repeat(node.min)
    if (node.type === 'empty' || node.isLook) return ''
    return (node.choices[choice % node.choices.length] ?? []).map((one) => toWord(one)).join('')
  }
  /** Each character of a set; each choice of a group, and that with one of its parts in each of its ways. */
  const toPumps = (node: Node): string[] => {
    if (node.type === 'set') return [...(alphabet.get(node.raw) ?? [])]
    if (node.type === 'repeat') return toPumps(node.of)
    if (node.type === 'empty' || node.isLook) return []
    return node.choices.flatMap((nodes) => {
      const words = nodes.map((one) => toWord(one))
      const changed = nodes.flatMap((one, at) => toPumps(one).map((pump) => words.with(at, pump).join('')))
      return [words.join(''), ...changed]
    })
  }
  const visit = (choices: readonly Node[][], before: string): void => {
    for (const nodes of choices) {
      let prefix = before
      for (const node of nodes) {
        if (node.type === 'group') visit(node.choices, prefix)
        if (node.type === 'repeat') {
          visit([[node.of]], prefix)
          if (node.max >= manyTimes) {
            const pumps = toPumps(node.of)
            for (const [at, pump] of pumps.entries()) {
              add(prefix, pump)
              add('\0', pump)
              add('', prefix + pump)
              // a search may begin at each boundary
              for (const other of pumps.slice(at + 1))
                if (isBoundary(pump, other) || isBoundary(other, pump)) add('', pump + other)
            }
            add('', prefix)
          }
        }
        // the shortest word of what comes before, and one more of what may repeat
        prefix += toWord(node)
      }
      if (attacks.size > 0) add('', prefix)
    }
  }
  visit(tree, '')
  return [...attacks.values()]
}

/** The text of an attack, which ends in what few patterns accept. */
export const toAttackText = ({ prefix, pump }: Attack, length: number): string =>
  `${prefix}${pump.repeat(Math.ceil(length / pump.length))}\0\n`
