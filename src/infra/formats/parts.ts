import type { ToolCallPiece } from '../models/openai/chunk.ts'
import type { CanonicalResult, Media } from '../models/ports.ts'
import { Unreadable } from '../models/unreadable.ts'

/** What a path gave, checked and turned into a part of the canonical result. All throw `Unreadable` with the path's name. */

type Member = Record<string, unknown>
const isObject = (value: unknown): value is Member =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `a && b` gives what `a` was where there is none of it. */
const isNothing = (found: unknown): boolean => found === null || found === false || found === ''

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'an object'
        : typeof value

/** A text, or a list of texts and `{text}` parts, joined. Null where there is none. */
export const textOf = (name: string, found: unknown, depth = 0): string | null => {
  if (found === null || found === false) return null
  if (typeof found === 'string') return found
  if (!Array.isArray(found)) throw new Unreadable(name, `${name} gives ${kindOf(found)}, not a text`)
  const pieces = found.filter((piece) => piece !== null)
  if (pieces.length === 0 && found.length > 0) return null
  return pieces
    .map((piece) => {
      if (typeof piece === 'string') return piece
      if (Array.isArray(piece) && depth < 3) return textOf(name, piece, depth + 1) ?? ''
      if (isObject(piece)) return typeof piece.text === 'string' ? piece.text : ''
      throw new Unreadable(name, `${name} gives a list with ${kindOf(piece)} in it, not texts`)
    })
    .join('')
}

/** A short text such as an id or a word; numbers are taken as they are written. */
export const wordOf = (found: unknown): string | null => {
  if (typeof found === 'string') return found === '' ? null : found.toWellFormed()
  return typeof found === 'number' && Number.isFinite(found) ? String(found) : null
}

const argumentsOf = (value: unknown): string => {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A list of `{id?, index?, name?, arguments}`, or one of them. */
export const callPieces = (found: unknown): ToolCallPiece[] => {
  if (isNothing(found)) return []
  return (Array.isArray(found) ? found : [found])
    .filter((call) => call !== null)
    .map((call: unknown, at) => {
      if (!isObject(call)) {
        throw new Unreadable('tool_calls', `tool_calls gives ${kindOf(call)} at ${at}, not a call`)
      }
      const { index, name, arguments: args } = call
      return {
        index: typeof index === 'number' && Number.isInteger(index) && index >= 0 ? index : null,
        id: wordOf(call.id) ?? '',
        name: typeof name === 'string' ? name : '',
        arguments: argumentsOf(args),
      }
    })
}

const dataAddress = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i
const base64 = /^[A-Za-z0-9+/_-][A-Za-z0-9+/_\r\n-]*={0,2}\s*$/

const addressed = (text: string, mimeType: unknown): Media | null => {
  if (/^(https?|gs|s3|oss):\/\//i.test(text)) return { url: text }
  const head = dataAddress.exec(text.slice(0, 200))
  if (head !== null) return { base64: text.slice(head[0].length), mime_type: head[1] || null }
  if (!base64.test(text)) return null
  return { base64: text, mime_type: typeof mimeType === 'string' ? mimeType : null }
}

const mediumOf = (name: string, value: unknown): Media => {
  const fields = isObject(value) ? value : { url: value }
  const text = [fields.url, fields.base64, fields.b64_json].find(
    (one) => typeof one === 'string' && one !== '',
  )
  const medium = typeof text === 'string' ? addressed(text, fields.mime_type) : null
  if (medium !== null) return medium
  throw new Unreadable(name, `${name} gives what is neither an address nor base64`)
}

export const mediaOf = (name: string, found: unknown): Media[] => {
  if (isNothing(found)) return []
  return (Array.isArray(found) ? found : [found])
    .filter((one) => one !== null)
    .map((one) => mediumOf(name, one))
}

const vectorOf = (value: unknown, at: number): readonly number[] => {
  if (!Array.isArray(value) || value.length === 0) {
    throw new Unreadable('embedding', `embedding gives ${kindOf(value)} at ${at}, not numbers`)
  }
  const wrong = value.findIndex((number) => typeof number !== 'number' || !Number.isFinite(number))
  if (wrong === -1) return value
  throw new Unreadable(
    'embedding',
    `embedding gives ${kindOf(value[wrong])} at ${at}, ${wrong}, not a number`,
  )
}

/** A list of vectors of one length, or one vector. */
export const vectorsOf = (found: unknown): (readonly number[])[] => {
  if (isNothing(found)) return []
  const list = Array.isArray(found) ? found : [found]
  const vectors = (typeof list[0] === 'number' ? [list] : list).map(vectorOf)
  const length = vectors[0]?.length ?? 0
  const odd = vectors.findIndex((vector) => vector.length !== length)
  if (odd === -1) return vectors
  throw new Unreadable(
    'embedding',
    `vector ${odd} has ${vectors[odd]?.length} numbers, the first has ${length}`,
  )
}

/** A list of `{index, score}` (or `relevance_score`), in the vendor's order. */
export const rankingOf = (found: unknown): CanonicalResult['ranking'] => {
  if (isNothing(found)) return []
  return (Array.isArray(found) ? found : [found]).map((entry: unknown, at) => {
    const fields = isObject(entry) ? entry : {}
    const score = fields.score ?? fields.relevance_score
    const { index } = fields
    if (typeof index === 'number' && Number.isInteger(index) && index >= 0 && Number.isFinite(score)) {
      return { index, score: Number(score) }
    }
    throw new Unreadable('ranking', `ranking gives at ${at} what has no index and score`)
  })
}

/** What an error path gave, if it is one: not null, false, 0, or empty. */
export const errorOf = (found: unknown): unknown => {
  if (found === null || found === false || found === 0 || found === '') return null
  if (typeof found === 'object' && found !== null && Object.keys(found).length === 0) return null
  return found
}
