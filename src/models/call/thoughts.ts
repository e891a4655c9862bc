import type { CanonicalResult, ResultDelta } from '../ports/model-ports.ts'

/** Servers without a parser for reasoning send a model's thoughts in its text, between such tags. Case does not matter. */
const names = ['think', 'thinking', 'thought', 'thoughts', 'reasoning', 'seed:think']
const pairs = [
  ...names.map((name) => ({ open: `<${name}>`, close: `</${name}>` })),
  { open: '[think]', close: '[/think]' },
  { open: '◁think▷', close: '◁/think▷' },
  { open: '<|begin_of_thought|>', close: '<|end_of_thought|>' },
  {
    open: '<|channel|>analysis<|message|>',
    close: '<|end|><|start|>assistant<|channel|>final<|message|>',
  },
]
const closings = pairs.map(({ close }) => close)
const tags = [...closings, ...pairs.map(({ open }) => open)]
const toSource = (text: string): string => text.replaceAll(/[|[\]]/g, String.raw`\$&`)
const anyTag = new RegExp(tags.map(toSource).join('|'), 'gi')

/** The first tag in a text, or the first that is this one, in small letters. */
const findTag = (text: string, tag?: string): { at: number; tag: string } | null => {
  for (const { 0: found, index } of text.matchAll(anyTag)) {
    const plain = found.toLowerCase()
    if (tag === undefined || plain === tag) return { at: index, tag: plain }
  }
  return null
}

/** How many characters at the end may be the beginning of one of these texts. */
const countOpen = (text: string, texts: readonly string[]): number => {
  const longest = Math.max(...texts.map(({ length }) => length - 1))
  for (let at = Math.max(0, text.length - longest); at < text.length; at++) {
    if (!'<[◁'.includes(text[at] ?? ' ')) continue
    const end = text.slice(at).toLowerCase()
    if (texts.some((one) => one.startsWith(end))) return text.length - at
  }
  return 0
}

/**
 * Whether a closing tag without an opening one ends thoughts: chat templates that open them leave only the end to the model.
 * One in code or in a sentence is part of the text.
 */
const endsThoughts = (before: string, after: string): boolean => {
  const isInCode = before.split('```').length % 2 === 0 || (before.split('\n').at(-1) ?? '').includes('`')
  if (isInCode || /["'“‘«(]$/.test(before)) return false
  return !/[ \t]$/.test(before) || /^\s*(\n|$)/.test(after)
}

type Split = { push(text: string): ResultDelta; end(): ResultDelta }

/**
 * Splits thoughts from text that comes in chunks: blocks at its beginning, and what stands before a closing tag alone.
 * `canRestart`: text that came before such a tag can be taken back.
 */
const openSplit = (canRestart: boolean): Split => {
  let mode: 'start' | 'inside' | 'text' = 'start'
  let close = ''
  let held = ''
  /** The text so far, while a closing tag alone may still end it. */
  let before: string | null = canRestart ? '' : null
  let hasThoughts = false
  let delta: ResultDelta = { text: '', reasoning: '' }

  /** Each step takes what it can of `held`; false: more has to come. */
  const steps = {
    start: (isEnd: boolean): boolean => {
      const rest = held.trimStart()
      const pair = pairs.find(({ open }) => rest.slice(0, open.length).toLowerCase() === open)
      if (pair) {
        mode = 'inside'
        close = pair.close
        held = rest.slice(pair.open.length)
        return true
      }
      const isOpen = rest === '' || pairs.some(({ open }) => open.startsWith(rest.toLowerCase()))
      if (isOpen && !isEnd) return false
      if (hasThoughts) held = rest
      mode = 'text'
      return true
    },
    inside: (isEnd: boolean): boolean => {
      const at = findTag(held, close)?.at ?? -1
      const length = at >= 0 ? at : held.length - (isEnd ? 0 : countOpen(held, [close]))
      delta.reasoning += held.slice(0, length)
      hasThoughts = true
      if (at < 0) {
        held = held.slice(length)
        return false
      }
      held = held.slice(at + close.length)
      before = null
      mode = 'start'
      return true
    },
    text: (isEnd: boolean): boolean => {
      const found = before === null ? null : findTag(held)
      const pass = (length: number): void => {
        delta.text += held.slice(0, length)
        if (before !== null) before += held.slice(0, length)
        held = held.slice(length)
      }
      if (before === null || (found === null && isEnd)) pass(held.length)
      else if (found === null) pass(held.length - countOpen(held, tags))
      else {
        const after = held.slice(found.at + found.tag.length)
        if (!closings.includes(found.tag)) before = null
        else if (/^[ \t]*$/.test(after) && !isEnd) return false
        else if (endsThoughts(before + held.slice(0, found.at), after)) {
          delta = { text: '', reasoning: before + held.slice(0, found.at), restart: true }
          held = after
          before = null
          hasThoughts = true
          mode = 'start'
          return true
        } else pass(found.at + found.tag.length)
        return true
      }
      return false
    },
  }
  const run = (isEnd: boolean): ResultDelta => {
    delta = { text: '', reasoning: '' }
    while (held !== '' && steps[mode](isEnd));
    return delta
  }
  return {
    push: (text) => {
      held += text
      return run(false)
    },
    end: () => run(true),
  }
}

/** Splits off the thoughts of one reply, while it is streamed and in its result. */
export const openThoughts = (canRestart: boolean, onDelta: (delta: ResultDelta) => void) => {
  let split = openSplit(canRestart)
  const pass = (delta: ResultDelta): void => {
    if (delta.text !== '' || delta.reasoning !== '' || delta.restart) onDelta(delta)
  }
  return {
    take({ text, reasoning, restart }: ResultDelta): void {
      if (restart) split = openSplit(canRestart)
      const delta = split.push(text)
      pass({
        ...delta,
        reasoning: reasoning + delta.reasoning,
        ...(restart && { restart }),
      })
    },
    /** The result without the thoughts in its text, which stays as `raw`. */
    finish(result: CanonicalResult): CanonicalResult {
      pass(split.end())
      const whole = openSplit(canRestart)
      const first = whole.push(result.text)
      const last = whole.end()
      const text = (last.restart ? '' : first.text) + last.text
      if (text === result.text) return result
      const thoughts = `${first.reasoning}${last.reasoning}`.trim()
      const reasoning = [result.reasoning, thoughts].filter((one) => one !== '').join('\n')
      return { ...result, text, reasoning, raw: result.text }
    },
  }
}
