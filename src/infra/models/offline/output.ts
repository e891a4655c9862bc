import type { Json } from '../../../state/runtime-state.ts'
import { readDate } from './dates.ts'
import { bestLines, boldIn, dateIn, listIn, numberIn, onlyNumberIn, tellingWords } from './facts.ts'
import { allowsNull, fits, follow, minimal, propertiesOf, schemaOf, typesOf } from './fill-schema.ts'
import { readNumber } from './numbers.ts'
import { isRecord, type Piece, readRequest } from './read-request.ts'
import { readResults } from './reflection.ts'
import { restyle } from './restyle.ts'

/** Output: the draft in the asked style, or its facts as the asked pieces. */

type Schema = Record<string, unknown>

/** Lines `- id: JSON` the planner left under "Pieces:", by id; the draft without them. */
const splitPieces = (draft: string): { text: string; pieces: ReadonlyMap<string, Json> } => {
  const at = draft.search(/(?:^|\n)Pieces:\n- /)
  if (at < 0) return { text: draft, pieces: new Map() }
  const pieces = draft
    .slice(at)
    .split('\n')
    .flatMap((line): [string, Json][] => {
      const m = /^- ([^\s:]+): (.+)$/.exec(line)
      try {
        return m ? [[m[1] ?? '', JSON.parse(m[2] ?? '') as Json]] : []
      } catch {
        return []
      }
    })
  return { text: draft.slice(0, at).trim(), pieces: new Map(pieces) }
}

/** Records as `{columns, rows}`, where the schema asks for a table in that form. */
const asTable = (value: Json): Json | undefined => {
  const all: unknown[] = Array.isArray(value) ? value : [value]
  const records = all.filter(isRecord)
  if (records.length === 0) return undefined
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))]
  return { columns, rows: records.map((record) => columns.map((column) => (record[column] ?? null) as Json)) }
}

const isTableSchema = (schema: Schema, root: Schema): boolean => {
  const properties = propertiesOf(schema, root)
  return 'columns' in properties && 'rows' in properties
}

const shape = (value: Json, schema: Schema, root: Schema): Json | undefined => {
  const types = typesOf(schema, root)
  if (isTableSchema(schema, root)) return asTable(value)
  if (fits(value, schema, root) && !Array.isArray(value))
    return schema.format === 'date' && typeof value === 'string'
      ? (readDate(value)?.slice(0, 10) ?? undefined)
      : value
  if (types.includes('number') || types.includes('integer')) {
    const number = typeof value === 'string' ? readNumber(value) : null
    return number ?? undefined
  }
  if (types.includes('array')) {
    const items = Array.isArray(value) ? value : [value]
    const item = follow(schema.items, root)
    const kept = items.flatMap((one): Json[] =>
      fits(one, item, root)
        ? [withFields(one, item, root)]
        : typesOf(item, root).includes('string')
          ? [String(isRecord(one) ? Object.values(one)[0] : one)]
          : [],
    )
    return kept.length > 0 || items.length === 0 ? kept : undefined
  }
  if (types.includes('string'))
    return typeof value === 'number'
      ? String(value)
      : Array.isArray(value)
        ? value.map(String).join(', ')
        : undefined
  return undefined
}

/** An object with the fields its schema names, filled by name, else by order. */
const withFields = (value: Json, schema: Schema, root: Schema): Json => {
  const names = Object.keys(propertiesOf(schema, root))
  if (!isRecord(value) || names.length === 0) return value
  const values = Object.values(value) as Json[]
  return Object.fromEntries(
    names.map((name, i) => [
      name,
      (value[name] as Json | undefined) ?? values[i] ?? minimal(propertiesOf(schema, root)[name], root),
    ]),
  )
}

const guess = (
  piece: Piece,
  schema: Schema,
  root: Schema,
  draft: string,
  results: string,
): Json | undefined => {
  const words = tellingWords(`${piece.expected} ${piece.id.replace(/[_.-]/g, ' ')}`)
  const lines = bestLines(draft, words)
  const types = typesOf(schema, root)
  const first = lines[0]
  if (schema.format === 'date' || piece.type === 'date') return dateIn([...lines, draft, results])
  if (types.includes('number') || types.includes('integer')) {
    const value = lines.map(numberIn).find((number) => number !== null) ?? onlyNumberIn(draft)
    return value === null ? undefined : types.includes('number') ? value : Math.round(value)
  }
  if (types.includes('boolean')) {
    if (first === undefined) return undefined
    return !/\b(?:no|not|none|nothing|false|never|without)\b|没有|不是|无法|\b0\b/i.test(
      first.replaceAll('*', ''),
    )
  }
  if (types.includes('array')) return shape(listIn(draft, lines), schema, root)
  if (types.includes('object')) return undefined
  if (first === undefined) return undefined
  return boldIn(first) ?? first.replace(/^\s*[-*]\s+/, '').trim()
}

/** Text can say that it is missing; a figure that was not found is null rather than made up, whatever the schema. */
const missing = (schema: Schema, root: Schema, asked: boolean): Json => {
  const text =
    typesOf(schema, root).includes('string') && schema.format === undefined && !Array.isArray(schema.enum)
  if (allowsNull(schema, root)) return null
  if (text) return 'Not found in what was given.'
  return asked ? null : minimal(schema, root)
}

/** Each property of the schema from the planner's own values, else from the draft, else said to be missing. */
export const output = (body: unknown): Record<string, Json> => {
  const request = readRequest(body, 'judge')
  const { text, pieces } = splitPieces(
    request.sections.get('Draft') ?? (request.sections.size === 0 ? request.prompt : ''),
  )
  const results = readResults(request.sections.get('Results') ?? '')
    .map((action) => action.text)
    .join('\n')
    .slice(0, 200_000)
  const root = schemaOf(body)
  const answer = restyle(text, request.sections.get('Output style') ?? '')
  if (root === null) return { answer }
  const properties = propertiesOf(root, root)
  return Object.fromEntries(
    Object.entries(properties).map(([id, schema]): [string, Json] => {
      if (
        id === 'answer' &&
        !request.pieces.some((piece) => piece.id === 'answer') &&
        fits(answer, schema, root)
      )
        return [id, answer]
      const described = typeof schema.description === 'string' ? schema.description : ''
      const piece = request.pieces.find((one) => one.id === id) ?? { id, type: '', expected: described }
      const planned = pieces.get(id)
      const given =
        planned === undefined
          ? undefined
          : piece.type === 'date'
            ? dateIn([String(planned)])
            : shape(planned, schema, root)
      const value = given ?? guess(piece, schema, root, text, results)
      return [
        id,
        value !== undefined && fits(value, schema, root)
          ? value
          : missing(
              schema,
              root,
              request.pieces.includes(piece) && piece.type !== 'list' && piece.type !== 'table',
            ),
      ]
    }),
  )
}
