import type { DialogueCut, DialogueEvent, ReadCall, WrittenBlock } from './events.ts'
import { type DialogueTag, findTagStart, isWhite, keepUpTo, readTag, withoutHalf } from './tags.ts'

/** Reads one reply while it is written. */
export type DialogueParser = {
  push(chunk: string): DialogueEvent[]
  /** The rest of the events; nothing may be pushed after it. */
  end(): DialogueEvent[]
  /** Whether the reply is over, whatever is pushed. */
  readonly isOver: boolean
}

/** Characters of a reply; the rest of a longer one is cut. */
export const maxReplyChars = 1_048_576
/** Calls of a reply; one with more is refused. */
const maxReplyCalls = 64

type State =
  | 'outside'
  | 'think'
  | 'answer'
  /** After a closing tag of an answer, which another one may still prove to be part of it. */
  | 'answered'
  | 'block'
  /** After `<server>`: a call where a tool's tag is next. */
  | 'server'
  | 'body'
  /** After `</tool>`: the end of the call where `</server>` is next. */
  | 'closing'
  /** After an error: only the end of the reply is looked for. */
  | 'refused'
  | 'over'

/** A tag or a part that is open. */
type Opened = { tag: string; expected: string; line: number }

/**
 * Reads the language of the dialogue, in time that grows with the length of the reply alone: docs/contract.md, section 6.
 *
 * @example
 * const parser = createDialogueParser()
 * parser.push('<think>Easy.</think><answer>4')
 * parser.push('</answer>')
 * parser.end()
 */
export const createDialogueParser = ({ maxChars = maxReplyChars } = {}): DialogueParser => {
  let state: State = 'outside'
  let events: DialogueEvent[] = []
  /** What is read, and how far; `offset` and `line` are those of the cursor in the whole reply. */
  let text = ''
  let cursor = 0
  let offset = 0
  let line = 1
  /** Where the next line ends in this text: each is looked for once. */
  let lineEnd = -1
  let isLast = false
  /** Text whose meaning is open: pieces of earlier chunks, then this one from an index on. */
  let held: string[] = []
  let heldFrom = 0
  /** Where the answered state goes on to look for a tag of an answer. */
  let searchFrom = 0
  let opened: Opened = { tag: '', expected: '', line: 1 }
  let block: { block: WrittenBlock; calls: ReadCall[]; line: number } | null = null
  let call = { server: '', tool: '', line: 1, offset: 0, end: 0 }
  let calls = 0
  let blocks = 0
  let taken = 0
  let pushed = 0
  let cutAt: DialogueCut['at'] | null = null
  let isTailWhite = true

  const advance = (to: number): void => {
    if (lineEnd < cursor) lineEnd = findLineEnd(text, cursor)
    for (; lineEnd < to; lineEnd = findLineEnd(text, lineEnd + 1)) line++
    offset += to - cursor
    cursor = to
  }
  const emitText = (part: 'said' | 'think' | 'answer', piece: string): void => {
    const last = events.at(-1)
    if (piece === '') return
    if (last?.kind === 'text' && last.part === part) last.text += piece
    else events.push({ kind: 'text', part, text: piece })
  }
  /** Emits the text up to there. */
  const emitUpTo = (part: 'said' | 'think' | 'answer', to: number): void => {
    emitText(part, text.slice(cursor, to))
    advance(to)
  }
  const hold = (from: number): void => {
    held = []
    heldFrom = from
  }
  /** What was held, with this text up to there. */
  const takeHeld = (to: number): string => {
    const whole = held.length > 0 ? held.join('') + text.slice(heldFrom, to) : text.slice(heldFrom, to)
    held = []
    return whole
  }
  const skipWhite = (): number => {
    let at = cursor
    while (at < text.length && isWhite(text.charCodeAt(at))) at++
    return at
  }
  const reportError = (at: Opened, message = `line ${at.line}: ${at.tag}: expected ${at.expected}`): void => {
    events.push({ kind: 'error', line: at.line, tag: at.tag, expected: at.expected, message })
    state = 'refused'
  }
  const refuse = (tag: string, expected: string, message?: string): true => {
    reportError({ tag, expected, line }, message)
    return true
  }
  const reportUnclosed = ({ tag, expected, line }: Opened): void =>
    reportError({ tag, expected, line }, `line ${line}: ${tag} is not closed: expected ${expected}`)
  const stop = (at: 'execute_tools' | 'result', from: number): false => {
    if (block && state !== 'refused') reportUnclosed(openBlock(block))
    advance(from)
    cutAt = at
    state = 'over'
    return false
  }

  /** Reads on until more has to come; true while a state may go on. */
  const steps: Record<State, () => boolean> = {
    outside() {
      let from = cursor
      for (;;) {
        const at = findTagStart(text, from)
        if (at < 0) {
          emitUpTo('said', keepUpTo(text, [], isLast))
          return false
        }
        const tag = readTag(text, at, isLast)
        if (tag === null) {
          from = at + 1
          continue
        }
        emitUpTo('said', at)
        return tag !== undefined && readOutside(tag)
      }
    },
    think: () => readPart('think', '</think>', 'outside'),
    answer: () => readPart('answer', answerEnd, 'answered'),
    answered() {
      answerTags.lastIndex = searchFrom
      const found = answerTags.exec(text)
      if (!found && !isLast) {
        searchFrom = keepUpTo(text, [answerEnd, '<answer>'], false)
        cursor = searchFrom
        return false
      }
      if (found?.[0] === answerEnd) {
        const piece = takeHeld(found.index)
        emitText('answer', piece)
        line += piece.split('\n').length - 1
        offset += piece.length
        hold(found.index)
        searchFrom = found.index + answerEnd.length
        return true
      }
      // the answer is over: what follows it is read as usual
      if (held.length > 0) {
        text = takeHeld(text.length)
        lineEnd = -1
      }
      cursor = heldFrom
      advance(cursor + answerEnd.length)
      events.push({ kind: 'close', part: 'answer' })
      state = 'outside'
      return true
    },
    block() {
      if (!block) return false
      advance(skipWhite())
      if (cursor === text.length) return false
      const expected = `a call or </${block.block}>`
      if (text.charCodeAt(cursor) !== 60) return refuse('text', expected)
      const tag = readTag(text, cursor, isLast)
      if (tag === undefined) return false
      if (tag === null) return refuse(otherTag.exec(text.slice(cursor, cursor + 64))?.[0] ?? '<', expected)
      if (!tag.isOfLanguage) return openServer(tag)
      if (tag.name === 'result' && !tag.isClosing) return stop('result', cursor)
      if (!tag.isClosing || !tag.isWhole || tag.name !== block.block) return refuse(tag.text, expected)
      if (block.calls.length === 0) return refuse(tag.text, 'a call')
      advance(tag.end)
      closeBlock(block)
      return true
    },
    server() {
      const at = skipWhite()
      if (at === text.length && !isLast) {
        advance(at)
        return false
      }
      const tag = text.charCodeAt(at) === 60 ? readTag(text, at, isLast) : null
      advance(at)
      if (tag === undefined) return false
      if (tag && !tag.isOfLanguage) {
        advance(tag.end)
        takeHeld(cursor)
        hold(cursor)
        call = { ...call, tool: tag.name, offset }
        state = 'body'
      } else if (block)
        return refuse(tag?.text ?? `<${call.server}>`, `the tag of a tool after <${call.server}>`)
      else {
        emitText('said', takeHeld(cursor))
        state = 'outside'
      }
      return true
    },
    body() {
      const closing = `</${call.tool}>`
      const at = text.indexOf(closing, cursor)
      if (at < 0) {
        advance(keepUpTo(text, [closing], isLast))
        return false
      }
      advance(at)
      call.end = offset
      advance(at + closing.length)
      state = 'closing'
      return true
    },
    closing() {
      const closing = `</${call.server}>`
      advance(skipWhite())
      if (text.startsWith(closing, cursor)) {
        const body = takeHeld(cursor).slice(0, call.end - call.offset)
        advance(cursor + closing.length)
        addCall(body)
        return true
      }
      if (!isLast && closing.startsWith(text.slice(cursor, cursor + closing.length))) return false
      state = 'body'
      return true
    },
    refused() {
      let from = cursor
      for (;;) {
        const at = text.indexOf('<', from)
        const tag = at < 0 ? null : readTag(text, at, isLast)
        if (at < 0 || tag === undefined) {
          advance(at < 0 ? text.length : at)
          return false
        }
        if (tag?.name === 'result' && !tag.isClosing) return stop('result', at)
        if (tag?.name === 'execute_tools' && tag.isWhole && !tag.isClosing)
          return stop('execute_tools', tag.end)
        from = at + 1
      }
    },
    over: () => false,
  }

  /** A part that is text up to its closing tag. */
  const readPart = (part: 'think' | 'answer', closing: string, next: State): boolean => {
    const at = text.indexOf(closing, cursor)
    if (at < 0) {
      emitUpTo(part, keepUpTo(text, [closing], isLast))
      return false
    }
    emitUpTo(part, at)
    state = next
    if (part === 'answer') {
      hold(at)
      searchFrom = at + closing.length
    } else {
      advance(at + closing.length)
      events.push({ kind: 'close', part })
    }
    return true
  }

  const readOutside = (tag: DialogueTag): boolean => {
    const { name, isClosing, isWhole } = tag
    if (!tag.isOfLanguage) return openServer(tag)
    if (name === 'result' && !isClosing) return stop('result', cursor)
    const form = name === 'execute_tools' ? '<execute_tools />' : `<${name}>`
    if (isClosing) return refuse(tag.text, `${form} before it`)
    if (!isWhole) return refuse(tag.text, form)
    if (name === 'execute_tools') {
      if (blocks === 0) refuse(form, 'a call before it', `there is no call before ${form}`)
      else events.push({ kind: 'execute', line })
      return stop('execute_tools', tag.end)
    }
    opened = { tag: form, expected: `</${name}>`, line }
    if (name === 'think' || name === 'answer') {
      events.push({ kind: 'open', part: name })
      state = name
    } else {
      block = { block: name === 'sequential' ? 'sequential' : 'parallel', calls: [], line }
      state = 'block'
    }
    advance(tag.end)
    return true
  }

  const openServer = ({ name, end }: DialogueTag): true => {
    hold(cursor)
    call = { ...call, server: name, line }
    advance(end)
    state = 'server'
    return true
  }

  const addCall = (body: string): void => {
    const { server, tool, line } = call
    const into = block ?? { block: 'single' as const, calls: [], line }
    const one: ReadCall = { server, tool, body, block: into.block, index: into.calls.length, line }
    if (++calls > maxReplyCalls) {
      const tag = `<${server}>`
      reportError(
        { tag, expected: `at most ${maxReplyCalls} calls`, line },
        `a reply has at most ${maxReplyCalls} calls; this one has more`,
      )
      return
    }
    into.calls.push(one)
    events.push({ kind: 'call', ...one })
    if (block) state = 'block'
    else closeBlock(into)
  }

  const closeBlock = (done: NonNullable<typeof block>): void => {
    events.push({ kind: 'block', ...done })
    blocks++
    block = null
    state = 'outside'
  }

  const read = (): DialogueEvent[] => {
    while (steps[state]());
    const isHolding = state === 'server' || state === 'body' || state === 'closing' || state === 'answered'
    if (isHolding && cursor > heldFrom) held.push(text.slice(heldFrom, cursor))
    if (state === 'over' && isTailWhite) isTailWhite = isBlank(text.slice(cursor))
    heldFrom = 0
    searchFrom = 0
    text = state === 'over' ? '' : text.slice(cursor)
    cursor = 0
    lineEnd = -1
    const read = events
    events = []
    return read
  }

  return {
    push(chunk) {
      pushed += chunk.length
      if (taken + chunk.length > maxChars) cutAt ??= 'size'
      const part = chunk.slice(0, maxChars - taken)
      taken += part.length
      if (isTailWhite) isTailWhite = isBlank(state === 'over' ? chunk : chunk.slice(part.length))
      if (state === 'over') return []
      text += part
      return read()
    },
    end() {
      isLast = true
      if (cutAt === 'size') text = withoutHalf(text)
      const last = read()
      if (state === 'think' || (state === 'answer' && cutAt !== 'size')) reportUnclosed(opened)
      else if (state === 'answer') events.push({ kind: 'close', part: 'answer' })
      else if (state === 'body' || state === 'closing') {
        const expected = `</${call.tool}></${call.server}>`
        reportUnclosed({ tag: `<${call.server}><${call.tool}>`, expected, line: call.line })
      } else if (block && (state === 'block' || state === 'server')) reportUnclosed(openBlock(block))
      const chars = pushed - offset
      const isCut = cutAt !== null && (cutAt !== 'execute_tools' || !isTailWhite)
      events.push({ kind: 'end', length: offset, cut: isCut && cutAt ? { at: cutAt, chars } : null })
      return [...last, ...events]
    },
    get isOver() {
      return cutAt !== null
    },
  }
}

const answerEnd = '</answer>'
const answerTags = /<\/?answer>/g
/** What is named of a `<` that begins no tag of the language. */
const otherTag = /^<\/?[\w.-]{0,40}>?/

const openBlock = ({ block, line }: { block: WrittenBlock; line: number }): Opened => ({
  tag: `<${block}>`,
  expected: `</${block}>`,
  line,
})

const findLineEnd = (text: string, from: number): number => {
  const at = text.indexOf('\n', from)
  return at < 0 ? Number.POSITIVE_INFINITY : at
}

const isBlank = (text: string): boolean => !/\S/.test(text)
