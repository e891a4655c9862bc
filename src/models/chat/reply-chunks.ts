import { randomUUID } from 'node:crypto'
import type { ToolCallRequest } from '../../state/ports/model-messages.ts'
import { ReplyLimitError } from '../ports/unreadable-response.ts'

/** More than any model writes, in characters, and as much as each later step handles without a pause. */
const maxLength = 4 * 1024 * 1024

/** Counts the characters of one answer: its text, reasoning and calls. Throws ReplyLimitError beyond the limit. */
export const createLengthLimit = () => {
  let length = 0
  return (chunk: string): void => {
    length += chunk.length
    if (length > maxLength) throw new ReplyLimitError(`more than ${maxLength} characters of text`)
  }
}
type LengthLimit = ReturnType<typeof createLengthLimit>

/** Joins chunks of text. A surrogate pair may be split between two chunks, so its first half waits for the next. */
export const createTextJoiner = (count: LengthLimit): { push(chunk: string): string; rest(): string } => {
  let half = ''
  return {
    push: (chunk) => {
      count(chunk)
      const text = half + chunk
      const code = text.charCodeAt(text.length - 1)
      half = code >= 0xd800 && code <= 0xdbff ? text.slice(-1) : ''
      return text.slice(0, text.length - half.length).toWellFormed()
    },
    rest: () => half.toWellFormed(),
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

type ToolCallDraft = { key: number; id: string; name: string; arguments: string[] }

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

/** Collects the chunks of a reply's tool calls. */
export type ToolCallCollector = { take(chunk: ToolCallChunk): void; all(): ToolCallRequest[] }

/**
 * Joins the chunks of tool calls by index. `usedIds` are the ids of the conversation so far: every id of the reply is
 * made unique among them and within the reply, whatever the server sends.
 */
export const createToolCallCollector = (usedIds: Iterable<string>, count: LengthLimit): ToolCallCollector => {
  const drafts: ToolCallDraft[] = []
  /** The last one of each index. */
  const byKey = new Map<number, ToolCallDraft>()
  const last = (): ToolCallDraft | undefined => drafts.at(-1)

  const open = (key: number): ToolCallDraft => {
    if (drafts.length === maxCalls) throw new ReplyLimitError(`more than ${maxCalls} tool calls`)
    const draft = { key, id: '', name: '', arguments: [] }
    drafts.push(draft)
    byKey.set(key, draft)
    return draft
  }
  /** A chunk without index belongs to the last call, unless it has a new id or a second name. */
  const find = (chunk: ToolCallChunk): ToolCallDraft => {
    const { id, name } = chunk
    const current = chunk.index === null ? last() : byKey.get(chunk.index)
    if (current === undefined) return open(chunk.index ?? drafts.length)
    const newCall = name !== '' && current.name !== '' && current.id !== '' && id !== '' && id !== current.id
    // Gemini's OpenAI-compatible endpoint numbers all parallel calls 0; only their ids differ
    if (newCall) return open(chunk.index ?? drafts.length)
    const unnumbered = chunk.index === null && id === '' && name !== '' && current.arguments.length > 0
    return unnumbered ? open(drafts.length) : current
  }

  return {
    take: (chunk) => {
      const draft = find(chunk)
      const { name, arguments: text } = chunk
      count(name)
      count(text)
      if (draft.id === '') draft.id = chunk.id
      // some servers repeat the whole name in each chunk, others send it in parts
      if (name !== draft.name) draft.name += name
      if (chunk.whole) draft.arguments = [text]
      else if (text !== '') draft.arguments.push(text)
    },
    all: () => {
      const taken = new Set(usedIds)
      const inOrder = drafts.toSorted((a, b) => a.key - b.key)
      return inOrder.map((draft) => {
        const id = findFreeId(draft.id.toWellFormed(), taken)
        taken.add(id)
        const text = draft.arguments.join('').toWellFormed()
        return { id, name: draft.name.toWellFormed(), arguments: text.trim() === '' ? '{}' : text }
      })
    },
  }
}
