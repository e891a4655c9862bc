import type { CanonicalResult, ResultDelta } from '../ports/model-ports.ts'
import { createOpenCounter } from './reply-end.ts'

/** Servers without a parser for reasoning send a model's thoughts in its text, between such tags. Case does not matter. */
const names = 'think thinking thought thoughts reasoning seed:think longcat_think'.split(' ')
const pairs = [
  ...names.map((name) => ({ open: `<${name}>`, close: `</${name}>` })),
  { open: '[think]', close: '[/think]' },
  { open: '◁think▷', close: '◁/think▷' },
  { open: '<|start_thinking|>', close: '<|end_thinking|>' },
  { open: '<|begin_of_thought|>', close: '<|end_of_thought|>' },
  {
    open: '<|channel|>analysis<|message|>',
    close: '<|end|><|start|>assistant<|channel|>final<|message|>',
  },
]
const closings = pairs.map(({ close }) => close)
const openings = pairs.map(({ open }) => open)
const tags = [...closings, ...openings]
const toSource = (text: string): string => text.replaceAll(/[|[\]]/g, String.raw`\$&`)
const anyTag = new RegExp(tags.map(toSource).join('|'), 'gi')
const countOpen = createOpenCounter(tags)

/** The first of these tags in a text, in small letters. */
const findTag = (text: string, wanted: readonly string[] = tags): { at: number; tag: string } | null => {
  for (const { 0: found, index } of text.matchAll(anyTag)) {
    const tag = found.toLowerCase()
    if (wanted.includes(tag)) return { at: index, tag }
  }
  return null
}

/** How many tags are judged, and by how much of the text around them: more would take too long. */
const limits = { tags: 50, before: 65_536, after: 1000 }

/**
 * Whether a tag within a text begins or ends thoughts: one in code, in JSON, in quotes or in a sentence is part of the text.
 * `hasEnded`: the thoughts have been closed, and only a tag that has a line of its own ends them again.
 */
const isMark = (before: string, after: string, hasEnded: boolean): boolean => {
  const line = before.split('\n').at(-1) ?? ''
  const isIn = (mark: RegExp): boolean => before.split(mark).length % 2 === 0
  if (line.includes('`') || isIn(/```/) || isIn(/^ {0,3}~~~/m)) return false
  if (/^\s*[[{]/.test(before) && isIn(/(?<!\\)"/)) return false
  const isLast = /^\s*\n/.test(after)
  return hasEnded ? isLast && line.trim() === '' : isLast || !/["'“‘«(（「『*|> \t]$/.test(line)
}

type Split = { push(text: string): ResultDelta; end(): ResultDelta }

/**
 * Splits thoughts from text that comes in chunks: blocks at its beginning, and what is before a closing tag alone: chat
 * templates that open the thoughts leave only the end to the model, and models open or end them twice. `canRestart`: text
 * that came before such a tag can be taken back. Otherwise it is text, unless more blocks were opened than closed: then it
 * waits for the next tag.
 */
const openSplit = (canRestart: boolean): Split => {
  let mode: 'start' | 'inside' | 'text' = 'start'
  let own: readonly string[] = []
  let held = ''
  /** How many blocks are open, by their tags. */
  let depth = 0
  let hasThoughts = false
  let thoughts = ''
  /** The text so far, while a closing tag alone may still end it; within a block, that of the block. */
  let before: string | null = canRestart ? '' : null
  let judged = 0
  /** Text of earlier chunks would have to be taken back. */
  let isSent = false
  let delta: ResultDelta = { text: '', reasoning: '' }
  const isKept = (): boolean => !canRestart && depth > 0 && mode === 'text'

  const pass = (length: number): void => {
    const part = held.slice(0, length)
    held = held.slice(length)
    if (before !== null) before += part
    if (mode === 'text') delta.text += isKept() ? '' : part
    else {
      thoughts += part
      delta.reasoning += part
    }
  }
  /** Takes the closing tag at the beginning of `held`. */
  const close = (length: number): void => {
    held = held.slice(length)
    hasThoughts = true
    judged += 1
    depth = Math.max(0, depth - 1)
    before = canRestart || depth > 0 ? '' : null
    mode = judged > limits.tags ? 'text' : 'start'
  }
  /** Whether the tag at the beginning of `held` is a mark; null: what says so has yet to come. */
  const judge = (tag: string, isEnd: boolean): boolean | null => {
    if (judged > limits.tags) return false
    const after = held.slice(tag.length, limits.after)
    const rest = after.replaceAll(anyTag, '')
    const isOpen = !isEnd && held.length < limits.after
    if (isOpen && rest.slice(0, rest.length - countOpen(rest)).trim() === '') return null
    judged += 1
    // with nothing behind the tag, the text before it is the only answer
    if (rest.trim() === '') return false
    return isMark((before ?? '').slice(-limits.before), after, hasThoughts && depth === 0)
  }

  /** Each step takes what it can of `held`; false: more has to come. */
  const steps = {
    start: (isEnd: boolean): boolean => {
      const rest = held.trimStart()
      const found = tags.find((tag) => rest.slice(0, tag.length).toLowerCase() === tag)
      if (found || hasThoughts) held = rest
      const isOpen = held.length < limits.after && tags.some((tag) => tag.startsWith(rest.toLowerCase()))
      if (!found && !isEnd && isOpen) return false
      if (!found) mode = 'text'
      else if (closings.includes(found)) close(found.length)
      else {
        held = rest.slice(found.length)
        own = [found, closings[openings.indexOf(found)] ?? '']
        depth += 1
        before = ''
        mode = 'inside'
      }
      return true
    },
    inside: (isEnd: boolean): boolean => {
      if (judged > limits.tags) own = own.slice(-1)
      const found = findTag(held, own)
      pass(found?.at ?? held.length - (isEnd ? 0 : countOpen(held)))
      if (!found) return false
      const { length } = found.tag
      const isClose = found.tag === own.at(-1)
      const isNested = !isClose && judge(found.tag, isEnd)
      if (isNested === null) return false
      if (isClose) close(length)
      // one at the very beginning is the model's, behind that of its template
      else if (before === '' || (isNested && before?.trim() === '')) held = held.slice(length)
      else {
        if (isNested) depth += 1
        pass(length)
      }
      return true
    },
    text: (isEnd: boolean): boolean => {
      const found = before === null ? null : findTag(held)
      pass(found?.at ?? held.length - (isEnd || before === null ? 0 : countOpen(held)))
      const isOurs = found && judge(found.tag, isEnd)
      if (!found || before === null || isOurs === null) return false
      const { length } = found.tag
      if (openings.includes(found.tag) || judged > limits.tags) {
        if (isOurs && depth > 0) depth += 1
        else {
          if (isKept()) delta.text += before
          depth = 0
          before = null
        }
      } else if (isOurs) {
        thoughts += before
        delta = isSent
          ? { text: '', reasoning: thoughts, restart: true }
          : { ...delta, text: '', reasoning: delta.reasoning + before }
        isSent = false
        close(length)
        return true
      }
      pass(length)
      return true
    },
  }
  const run = (text: string, isEnd: boolean): ResultDelta => {
    held += text
    delta = { text: '', reasoning: '' }
    while (held !== '' && steps[mode](isEnd));
    if (isEnd && isKept()) delta.text += before ?? ''
    isSent ||= delta.text !== ''
    return delta
  }
  return { push: (text) => run(text, false), end: () => run('', true) }
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
      pass({ ...delta, reasoning: reasoning + delta.reasoning, ...(restart && { restart }) })
    },
    /** The result without the thoughts in its text, which stays as `raw`. */
    finish(result: CanonicalResult): CanonicalResult {
      pass(split.end())
      const whole = openSplit(canRestart)
      const first = whole.push(result.text)
      const last = whole.end()
      const text = (last.restart ? '' : first.text) + last.text
      if (text === result.text) return result
      const thoughts = `${last.restart ? '' : first.reasoning}${last.reasoning}`.trim()
      const reasoning = [result.reasoning, thoughts].filter((one) => one !== '').join('\n')
      return { ...result, text, reasoning, raw: result.text }
    },
  }
}
