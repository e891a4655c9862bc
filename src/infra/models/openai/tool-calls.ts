import { randomUUID } from 'node:crypto'
import type { ToolCallRequest } from '../../../state/ports.ts'
import type { ToolCallPiece } from './chunk.ts'

type Draft = { key: number; id: string; name: string; arguments: string[] }

/** The longest id OpenAI takes back. */
const longestId = 40

const newId = (): string => `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`

/** `id` if it is free, else a variant that is. */
const freeId = (id: string, taken: ReadonlySet<string>): string => {
  if (id === '' || id.length > longestId) return newId()
  for (let n = 1; n < 1000; n += 1) {
    const candidate = n === 1 ? id : `${id.slice(0, longestId - 4)}_${n}`
    if (!taken.has(candidate)) return candidate
  }
  return newId()
}

export type ToolCalls = { take(piece: ToolCallPiece): void; all(): ToolCallRequest[] }

/**
 * Puts the pieces of tool calls together by index. `usedIds` are those of the conversation so far: with them
 * and within the reply every id comes out unique, whatever the server sends.
 */
export const collectToolCalls = (usedIds: Iterable<string>): ToolCalls => {
  const drafts: Draft[] = []
  const last = (): Draft | undefined => drafts.at(-1)

  const open = (key: number): Draft => {
    const draft = { key, id: '', name: '', arguments: [] }
    drafts.push(draft)
    return draft
  }
  /** A piece without index belongs to the last call, unless it brings a new id or a second name. */
  const find = (piece: ToolCallPiece): Draft => {
    const { id, name } = piece
    const known = piece.index === null ? last() : drafts.findLast((draft) => draft.key === piece.index)
    if (known === undefined) return open(piece.index ?? drafts.length)
    const newCall = name !== '' && known.name !== '' && known.id !== '' && id !== '' && id !== known.id
    // Gemini's door numbers all parallel calls 0; only their ids tell them apart
    if (newCall) return open(piece.index ?? drafts.length)
    const unnumbered = piece.index === null && id === '' && name !== '' && known.arguments.length > 0
    return unnumbered ? open(drafts.length) : known
  }

  return {
    take: (piece) => {
      const draft = find(piece)
      const { name, arguments: text } = piece
      if (draft.id === '') draft.id = piece.id
      // some servers repeat the whole name in each piece, others send it in parts
      if (name !== draft.name) draft.name += name
      if (text !== '') draft.arguments.push(text)
    },
    all: () => {
      const taken = new Set(usedIds)
      const inOrder = drafts.toSorted((a, b) => a.key - b.key)
      return inOrder.map((draft) => {
        const id = freeId(draft.id.toWellFormed(), taken)
        taken.add(id)
        const text = draft.arguments.join('').toWellFormed()
        return { id, name: draft.name.toWellFormed(), arguments: text.trim() === '' ? '{}' : text }
      })
    },
  }
}
