import { isJsonObject } from '../../../infra/lib/json-text.ts'
import { readIndex, type ToolCallChunk, toArgumentsText } from '../../../models/chat/reply-chunks.ts'
import type { CanonicalResult, Media } from '../../../models/ports/model-ports.ts'
import { UnreadableResponseError } from '../../../models/ports/unreadable-response.ts'

/** Turn the value of a path into a part of the canonical result. All throw UnreadableResponseError with the path's name. */

/** The elements of a list, or the one value. Empty values have none: `a && b` gives the value of `a` when that is empty. */
const toList = (value: unknown): unknown[] => {
  if (value === null || value === false || value === '') return []
  return Array.isArray(value) ? value : [value]
}

const describeType = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : typeof value
}

const createTypeError = (name: string, value: unknown, expected: string): UnreadableResponseError =>
  new UnreadableResponseError(name, `${name} gives ${describeType(value)}${expected}`)

/** A text, or a list of texts and `{text}` parts, joined. Null when there is none. */
export const readTextPart = (name: string, value: unknown, depth = 0): string | null => {
  if (value === null || value === false) return null
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw createTypeError(name, value, ', not a text')
  const chunks = value.filter((chunk) => chunk !== null)
  if (chunks.length === 0 && value.length > 0) return null
  return chunks
    .map((chunk) => {
      if (typeof chunk === 'string') return chunk
      if (Array.isArray(chunk) && depth < 3) return readTextPart(name, chunk, depth + 1) ?? ''
      if (isJsonObject(chunk)) return typeof chunk.text === 'string' ? chunk.text : ''
      throw new UnreadableResponseError(
        name,
        `${name} gives a list with ${describeType(chunk)} in it, not texts`,
      )
    })
    .join('')
}

/** A short text such as an id; a number is written as text. Null for anything else. */
export const readWord = (value: unknown): string | null => {
  if (typeof value === 'string') return value === '' ? null : value.toWellFormed()
  return Number.isFinite(value) ? String(value) : null
}

/** A list of `{id?, index?, name?, arguments, whole?, skip?}`, or one of them. */
export const readCallChunks = (value: unknown): (ToolCallChunk & { skip: boolean })[] =>
  toList(value)
    .filter((call) => call !== null)
    .map((call, at) => {
      const excerpt = typeof call === 'string' ? ` (${call.slice(0, 60).toWellFormed()})` : ''
      if (!isJsonObject(call)) throw createTypeError('tool_calls', call, ` at ${at}${excerpt}, not a call`)
      const { index, id, name } = call
      return {
        index: readIndex(index),
        id: readWord(id) ?? '',
        name: typeof name === 'string' ? name : '',
        arguments: toArgumentsText(call.arguments),
        whole: call.whole === true,
        skip: call.skip === true,
      }
    })

const dataAddress = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i
const base64 = /^[A-Za-z0-9+/_-](?:[A-Za-z0-9+/_\r\n-]*[A-Za-z0-9+/_-])?={0,2}\s*$/

const readAddress = (text: string, mimeType: unknown): Media | null => {
  if (/^(https?|gs|s3|oss):\/\//i.test(text)) return { url: text }
  const head = dataAddress.exec(text.slice(0, 200))
  if (head !== null) return { base64: text.slice(head[0].length), mime_type: head[1] || null }
  if (!base64.test(text)) return null
  return { base64: text, mime_type: typeof mimeType === 'string' ? mimeType : null }
}

const readMedium = (value: unknown): Media | null => {
  const fields = isJsonObject(value) ? value : { url: value }
  const text = [fields.url, fields.base64, fields.b64_json].find(
    (one) => typeof one === 'string' && one !== '',
  )
  return typeof text === 'string' ? readAddress(text, fields.mime_type) : null
}

/** Addresses or base64, one or a list of them. Only media that are needed make a response unreadable. */
export const readMedia = (name: string, value: unknown, isNeeded: boolean): Media[] =>
  toList(value)
    .filter((one) => one !== null)
    .flatMap((one) => {
      const medium = readMedium(one)
      if (medium !== null || !isNeeded) return medium ?? []
      throw new UnreadableResponseError(name, `${name} gives a value that is neither an address nor base64`)
    })

const readVector = (value: unknown, at: number): readonly number[] => {
  if (!Array.isArray(value) || value.length === 0)
    throw createTypeError('embedding', value, ` at ${at}, not numbers`)
  const wrong = value.findIndex((number) => !Number.isFinite(number))
  if (wrong === -1) return value
  throw createTypeError('embedding', value[wrong], ` at ${at}, ${wrong}, not a number`)
}

/** A list of vectors of one length, or one vector. */
export const readVectors = (value: unknown): (readonly number[])[] => {
  const list = toList(value)
  const vectors = (typeof list[0] === 'number' ? [list] : list).map(readVector)
  const length = vectors[0]?.length ?? 0
  const odd = vectors.findIndex((vector) => vector.length !== length)
  if (odd === -1) return vectors
  throw new UnreadableResponseError(
    'embedding',
    `vector ${odd} has ${vectors[odd]?.length} numbers, the first has ${length}`,
  )
}

/** A list of `{index, score}` (or `relevance_score`), in the vendor's order. */
export const readRanking = (value: unknown): CanonicalResult['ranking'] =>
  toList(value).map((entry, at) => {
    const { index: given, score, relevance_score } = isJsonObject(entry) ? entry : {}
    const [index, number] = [readIndex(given), score ?? relevance_score]
    if (index !== null && typeof number === 'number' && Number.isFinite(number))
      return { index, score: number }
    throw new UnreadableResponseError('ranking', `ranking gives an entry without index and score at ${at}`)
  })
