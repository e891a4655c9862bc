import { randomUUID } from 'node:crypto'
import { isJsonText, parseJsonOrText } from '../../infra/lib/json-text.ts'
import type { ToolCallRequest } from '../../state/ports/model-messages.ts'
import type { ResultDelta } from '../ports/model-ports.ts'
import { ReplyLimitError } from '../ports/unreadable-response.ts'

/** More than any model writes, in characters, and as much as each later step handles without a pause. */
const maxLength = 4 * 1024 * 1024

/**
 * Counts the characters of one answer: its text, reasoning and calls; `total` gives them. Throws ReplyLimitError beyond the
 * limit.
 */
export const createLengthLimit = () => {
  let length = 0
  const count = (chunk: string): void => {
    length += chunk.length
    if (length > maxLength) throw new ReplyLimitError(`more than ${maxLength} characters of text`)
  }
  return Object.assign(count, { total: () => length })
}
type LengthLimit = ReturnType<typeof createLengthLimit>

/** Joins chunks of text. A surrogate pair may be split between two chunks, so its first half waits for the next. */
const createTextJoiner = (count: LengthLimit) => {
  let half = ''
  let all = ''
  const add = (text: string): string => {
    all += text
    return text
  }
  return {
    push: (chunk: string): string => {
      if (chunk === '') return ''
      count(chunk)
      const text = half + chunk
      const code = text.charCodeAt(text.length - 1)
      half = code >= 0xd800 && code <= 0xdbff ? text.slice(-1) : ''
      return add(text.slice(0, text.length - half.length).toWellFormed())
    },
    rest: (): string => {
      const text = half.toWellFormed()
      half = ''
      return add(text)
    },
    /** What a whole text adds; null where it is not what came before and more. One that is empty, or differs in the white space around it, replaces nothing. */
    replace: (text: string): string | null => {
      if (text === '' || text.trim() === all.trim()) return ''
      const before = all
      count(text.slice(before.length))
      half = ''
      all = text.toWellFormed()
      return all.startsWith(before) ? all.slice(before.length) : null
    },
    all: (): string => all,
  }
}

/** The text and the reasoning of a reply. */
type ReplyTexts = { text: string; reasoning: string }

/** Joins the texts of a reply; gives what each chunk adds. */
export const createTextCollector = (count: LengthLimit) => {
  const text = createTextJoiner(count)
  const reasoning = createTextJoiner(count)
  return {
    push: (chunk: ReplyTexts): ResultDelta => ({
      text: text.push(chunk.text),
      reasoning: reasoning.push(chunk.reasoning),
    }),
    /** A whole message after chunks: it replaces them. */
    replace: (whole: ReplyTexts): ResultDelta => {
      const delta = { text: text.replace(whole.text), reasoning: reasoning.replace(whole.reasoning) }
      return delta.text === null || delta.reasoning === null
        ? { text: text.all(), reasoning: reasoning.all(), restart: true }
        : { text: delta.text, reasoning: delta.reasoning }
    },
    rest: (): ResultDelta => ({ text: text.rest(), reasoning: reasoning.rest() }),
    all: (): ReplyTexts => ({ text: text.all(), reasoning: reasoning.all() }),
  }
}

/**
 * One chunk of a tool call; `index` null: the server sends no numbers. Empty strings: not in this chunk. `whole`: its
 * arguments replace those of the chunks before.
 */
export type ToolCallChunk = {
  index: number | null
  id: string
  name: string
  arguments: string
  whole?: boolean
}

/** A whole number from 0 on, also as a text; else null. */
export const readIndex = (value: unknown): number | null => {
  const index = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 ? index : null
}

/** Arguments as text; `[]` is how PHP writes an object without members. */
export const toArgumentsText = (value: unknown): string => {
  const isNone = value == null || (Array.isArray(value) && value.length === 0)
  return typeof value === 'string' ? value : isNone ? '' : JSON.stringify(value)
}

/** The text of an object, also where a server has encoded it twice. */
const readTwice = (text: string): string => {
  const inner = /^\s*"/.test(text) ? parseJsonOrText(text) : null
  return typeof inner === 'string' && isWholeObject(inner) ? inner : text
}

type ToolCallDraft = { key: number; id: string; name: string; arguments: string }

/** More than any model calls at once, and as much as is handled without a pause. */
const maxCalls = 1000
/** The longest id that OpenAI accepts. */
const maxIdLength = 40

const createCallId = (): string => `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`

/** `id` if it is free, else a variant that is. */
const findFreeId = (id: string, taken: ReadonlySet<string>): string => {
  if (id === '' || id.length > maxIdLength) return createCallId()
  for (let n = 1; n < 1000; n += 1) {
    const candidate = n === 1 ? id : `${id.slice(0, maxIdLength - 4)}_${n}`
    if (!taken.has(candidate)) return candidate
  }
  return createCallId()
}

/** Whether these arguments are whole: what follows them is not part of them. */
const isWholeObject = (text: string): boolean => text.trimEnd().endsWith('}') && isJsonText(text)

/** Whether a text replaces the arguments before: some servers begin with `{}`, others send all so far each time. */
const isGrown = (before: string, text: string): boolean =>
  text !== '' && (before === '{}' || (text.startsWith(before) && /^\s*\{/.test(before)))

/** Whether a server sends a whole call once more. */
const isRepeated = (current: ToolCallDraft, { id, name, arguments: text }: ToolCallChunk): boolean =>
  name === current.name && id === current.id && (text === '' || (id !== '' && text === current.arguments))

/**
 * Whether a chunk at the index of `current` begins another call. Gemini's OpenAI-compatible endpoint numbers all parallel
 * calls 0, some servers send no ids, and others an id or the whole name in each chunk.
 */
const beginsCall = (current: ToolCallDraft, chunk: ToolCallChunk): boolean => {
  const { id, name, arguments: text } = chunk
  if (name === '' || current.name === '') return false
  const isOtherId = id !== '' && current.id !== '' && id !== current.id
  if (chunk.whole) return chunk.index === null && isOtherId
  if (current.arguments === '') return isOtherId
  if (isWholeObject(current.arguments)) return isOtherId || (text !== '' && !isRepeated(current, chunk))
  return name !== current.name && (isOtherId || text !== '')
}

/**
 * Joins the chunks of tool calls by index. `usedIds` are the ids of the conversation so far: every id of the reply is
 * made unique among them and within the reply, whatever the server sends.
 */
export const createToolCallCollector = (usedIds: Iterable<string>, count: LengthLimit) => {
  let drafts: ToolCallDraft[] = []
  /** The last one of each index. */
  const byKey = new Map<number, ToolCallDraft>()

  const open = (key: number): ToolCallDraft => {
    if (drafts.length === maxCalls) throw new ReplyLimitError(`more than ${maxCalls} tool calls`)
    const draft = { key, id: '', name: '', arguments: '' }
    drafts.push(draft)
    byKey.set(key, draft)
    return draft
  }
  /** A chunk without index belongs to the call with its id, else to the last one. Two chunks of one list that have names are two calls. */
  const find = (chunk: ToolCallChunk, named: ReadonlySet<ToolCallDraft>): ToolCallDraft => {
    const own = drafts.findLast(({ id, key }) => id !== '' && id === chunk.id && key === (chunk.index ?? key))
    const current = own ?? (chunk.index === null ? drafts.at(-1) : byKey.get(chunk.index))
    const isNew = current && ((chunk.name !== '' && named.has(current)) || beginsCall(current, chunk))
    return current && !isNew ? current : open(chunk.index ?? drafts.length)
  }

  return {
    take: (chunks: readonly ToolCallChunk[]): void => {
      const named = new Set<ToolCallDraft>()
      for (const chunk of chunks) {
        const draft = find(chunk, named)
        const { name, arguments: text } = chunk
        count(name)
        count(text)
        if (name !== '') named.add(draft)
        if (draft.id === '') draft.id = chunk.id
        // some servers send the name in parts, others all of it so far in each chunk
        if (name !== draft.name) draft.name = name.startsWith(draft.name) ? name : draft.name + name
        if (chunk.whole || isGrown(draft.arguments, text)) draft.arguments = text
        else draft.arguments += text
      }
    },
    /** A whole message replaces what came before. */
    restart: (): void => {
      drafts = []
      byKey.clear()
    },
    all: (): ToolCallRequest[] => {
      const taken = new Set(usedIds)
      // a placeholder is not a call
      const made = drafts.filter((draft) => draft.name + draft.arguments !== '').sort((a, b) => a.key - b.key)
      return made.map((draft) => {
        const id = findFreeId(draft.id.toWellFormed(), taken)
        taken.add(id)
        const text = draft.arguments.toWellFormed()
        return { id, name: draft.name.toWellFormed(), arguments: text.trim() === '' ? '{}' : readTwice(text) }
      })
    },
  }
}
