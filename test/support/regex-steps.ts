import { type Attack, listAttacks, type Node, parsePattern, toAttackText } from './regex-attacks.ts'

/** Reads on from a place, and gives what `next` says of where it ended. */
type Matcher = (at: number, next: (at: number) => boolean) => boolean

/** No linear scan of the texts here comes near it. */
const maxSteps = 5_000_000
const tooMany = new Error('more than the limit')

/**
 * How often an engine that backtracks, as that of JavaScript does, looks at a part of a pattern while it searches a text: a
 * count, which is the same on every machine. Infinite beyond 5 million.
 */
const createStepCounter = ({ source, flags }: RegExp): ((text: string) => number) => {
  let chars: string[] = []
  const isWord = new Map<string | undefined, boolean>()
  const isWordAt = (at: number): boolean => {
    const known = isWord.get(chars[at]) ?? /^\w$/.test(chars[at] ?? '')
    isWord.set(chars[at], known)
    return known
  }
  const isLine = flags.includes('m')
  const isEndOfLine = (char = ''): boolean => isLine && char !== '' && '\n\r\u2028\u2029'.includes(char)
  let steps = 0
  const step = (): void => {
    if (++steps > maxSteps) throw tooMany
  }
  /** From where to where; no text is made of it unless the pattern asks for it. */
  let captures: (readonly [number, number] | undefined)[] = []
  const names = new Map<string, number>()

  const toSet = (raw: string): ((char: string | undefined) => boolean) => {
    const pattern = new RegExp(`^(?:${raw})$`, flags.replace(/[gmy]/g, ''))
    const known = new Map<string | undefined, boolean>([[undefined, false]])
    return (char) => {
      const found = known.get(char) ?? pattern.test(char ?? '')
      known.set(char, found)
      return found
    }
  }
  const toEmpty = (raw: string, by: 1 | -1): Matcher => {
    if (raw === '^') return (at, next) => (at === 0 || isEndOfLine(chars[at - 1])) && next(at)
    if (raw === '$') return (at, next) => (at === chars.length || isEndOfLine(chars[at])) && next(at)
    if (/^\\[bB]$/.test(raw))
      return (at, next) => (isWordAt(at - 1) !== isWordAt(at)) === (raw === '\\b') && next(at)
    const name = /^\\k<(.*)>$/.exec(raw)?.[1]
    return (at, next) => {
      const nth = name === undefined ? Number(raw.slice(1)) : (names.get(name) ?? 0)
      const [start, end] = captures[nth] ?? [0, 0]
      const length = end - start
      const from = by > 0 ? at : at - length
      for (let past = 0; past < length; past++) if (chars[from + past] !== chars[start + past]) return false
      return next(at + by * length)
    }
  }
  const compile = (node: Node, by: 1 | -1): Matcher => {
    if (node.type === 'empty') return toEmpty(node.raw, by)
    if (node.type === 'set') {
      const isIn = toSet(node.raw)
      return (at, next) => {
        step()
        return isIn(chars[by > 0 ? at : at - 1]) && next(at + by)
      }
    }
    if (node.type === 'group') {
      const nth = /^$|^\?<[^=!]/.test(node.opening) ? groups++ : 0
      if (node.opening.startsWith('?<')) names.set(node.opening.slice(2, -1), nth)
      const toward = node.isLook ? (node.opening.startsWith('?<') ? -1 : 1) : by
      const of = toChoice(node.choices, toward)
      if (node.isLook) {
        const isWanted = node.opening.endsWith('=')
        return (at, next) => of(at, () => true) === isWanted && next(at)
      }
      if (nth === 0) return of
      return (at, next) =>
        of(at, (end) => {
          const before = captures[nth]
          captures[nth] = at < end ? [at, end] : [end, at]
          if (next(end)) return true
          captures[nth] = before
          return false
        })
    }
    const { min, max, isLazy } = node
    const of = compile(node.of, by)
    const repeat = (count: number, at: number, next: (at: number) => boolean): boolean => {
      step()
      const more = (): boolean =>
        count < max && of(at, (end) => (end !== at || count < min) && repeat(count + 1, end, next))
      if (count < min) return more()
      return isLazy ? next(at) || more() : more() || next(at)
    }
    if (node.of.type !== 'set') return (at, next) => repeat(0, at, next)
    // without a frame for each character
    const isIn = toSet(node.of.raw)
    return (at, next) => {
      const isAt = (count: number): boolean => {
        step()
        return isIn(chars[by > 0 ? at + count : at - 1 - count])
      }
      let count = 0
      while (count < (isLazy ? min : max) && isAt(count)) count++
      if (count < min) return false
      for (; isLazy; count++) {
        if (next(at + by * count)) return true
        if (count === max || !isAt(count)) return false
      }
      for (; count >= min; count--) {
        step()
        if (next(at + by * count)) return true
      }
      return false
    }
  }
  const toSequence = (nodes: Node[], by: 1 | -1): Matcher => {
    const parts = nodes.map((node) => compile(node, by))
    if (by < 0) parts.reverse()
    const run = (nth: number, at: number, next: (at: number) => boolean): boolean => {
      const part = parts[nth]
      return part ? part(at, (end) => run(nth + 1, end, next)) : next(at)
    }
    return (at, next) => run(0, at, next)
  }
  const toChoice = (choices: Node[][], by: 1 | -1): Matcher => {
    const all = choices.map((nodes) => toSequence(nodes, by))
    const firsts = choices.map((nodes) => {
      const first = nodes.at(by > 0 ? 0 : -1)
      return first?.type === 'set' ? toSet(first.raw) : () => true
    })
    // by the next character: one look tells what begins with others
    const left = new Map<string | undefined, Matcher[]>()
    return (at, next) => {
      const char = chars[by > 0 ? at : at - 1]
      const known = left.get(char) ?? all.filter((_, nth) => firsts[nth]?.(char))
      left.set(char, known)
      return known.some((one) => one(at, next))
    }
  }

  let groups = 1
  const whole = toChoice(parsePattern(source), 1)
  const native = new RegExp(source, flags)
  return (text) => {
    chars = /[uv]/.test(flags) ? [...text] : text.split('')
    steps = 0
    captures = []
    let matches = 0
    try {
      for (let at = 0; at <= chars.length; ) {
        step()
        let end = -1
        const isFound = whole(at, (place) => {
          end = place
          return true
        })
        if (isFound) matches++
        if (flags.includes('y') || (isFound && !flags.includes('g'))) break
        at = isFound && end > at ? end : at + 1
      }
    } catch (error) {
      if (error !== tooMany) throw error
      return Number.POSITIVE_INFINITY
    }
    native.lastIndex = 0
    if (matches > 0 !== native.test(text))
      throw new Error(`/${source}/${flags} is read wrongly here: correct createStepCounter`)
    return steps
  }
}

/** A text, made against a pattern, of which twice as much takes more than twice the steps; null: it has none. */
export const findSlowText = ({ source, flags }: { source: string; flags: string }): string | null => {
  const countSteps = createStepCounter(new RegExp(source, flags))
  const steps = (attack: Attack, length: number): number => countSteps(toAttackText(attack, length))
  // what a part of the pattern asks for at least
  const least = Math.max(0, ...Array.from(source.matchAll(/\{(\d+)/g), ([, count]) => Number(count)))
  /** Whether of three short texts the last took more than the second as this took more than the first. */
  const bends = (attack: Attack): boolean => {
    const once = attack.pump.length * Math.ceil((12 + least) / attack.pump.length)
    const three = steps(attack, 3 * once)
    const two = steps(attack, 2 * once)
    return three === Number.POSITIVE_INFINITY || three - two > two - steps(attack, once)
  }
  const grows = (attack: Attack, length: number): boolean => {
    const two = steps(attack, 2 * length)
    return two === Number.POSITIVE_INFINITY || two > 2.4 * steps(attack, length)
  }
  // what is repeated up to some hundred times grows at first
  const slow = listAttacks(source, flags).find(
    (attack) => bends(attack) && grows(attack, 128) && grows(attack, 1024),
  )
  return slow === undefined ? null : JSON.stringify(slow)
}
