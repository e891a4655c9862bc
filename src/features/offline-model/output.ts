import { readRequestedForm } from '../../context/requested-form.ts'
import { titles } from '../../context/sections.ts'
import type { Json } from '../../state/runtime-state.ts'
import { type Finding, toJson } from './answers.ts'
import { type OfflineRequest, partText, promptOf } from './request.ts'

/** The last step: the planner's draft in the style asked for, or as the pieces of a structured answer. */

export type Piece = { id: string; type: string; expected: string }

/** The style and the pieces that a prompt has, else those that its request asks for. */
export const readForm = (request: OfflineRequest): { style: string; pieces: Piece[]; isNew: boolean } => {
  const [style, structure] = [partText(request, titles.style), partText(request, titles.structure)]
  if (style || structure) return { style, pieces: readPieces(structure), isNew: false }
  const form = readRequestedForm(promptOf(request))
  return { style: form.style, pieces: form.structure, isNew: true }
}

/** The lines `- id (type): expected` of a prompt. */
const readPieces = (text: string): Piece[] =>
  [...text.matchAll(/^- ([^\s(]+) \(([^()\n]*)\): (.*)$/gm)].map((match) => {
    const [, id = '', type = '', expected = ''] = match
    return { id, type, expected }
  })

/** What a finding is as a piece of a type; null where it is none: a figure that was not found is not made up. */
const fitPiece = (type: string, { value = null, rows = [], text }: Finding): Json => {
  const cells = rows.map((row) => Object.values(row).map(toJson))
  switch (type) {
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'number' ? value > 0 : null
    case 'list':
      return Array.isArray(value) ? value : cells.map(([first = null]) => first)
    case 'table':
      return cells.length > 0 ? { columns: Object.keys(rows[0] ?? {}), rows: cells } : null
    case 'date':
      return /\d{4}-\d{2}-\d{2}/.exec(text)?.[0] ?? null
    case 'text':
      return value === null || typeof value === 'object' ? text : String(value)
    default:
      return value
  }
}

const heading = '\n\nPieces:\n'

/** The draft that the planner hands on: what it found, and the values of the pieces. */
export const toDraft = (text: string, pieces: readonly Piece[], found: readonly Finding[]): string => {
  const values = pieces.map(({ id, type }, at) => [id, fitPiece(type, found[at] ?? { text: '' })])
  return pieces.length === 0 ? text : `${text}${heading}${JSON.stringify(Object.fromEntries(values))}`
}

/** The draft without details where it should be short, and as a list where it should be one. */
const restyle = (draft: string, style: string): string => {
  const isShort = /\b(?:short|brief|concise)\b|简短|简洁/i.test(style)
  const text = isShort ? draft.replace(/ \([^()]*\)$/gm, '').replace(/\n(?:- |\d+\. ).*/g, '') : draft
  return /\bbullets?\b|要点|列表/i.test(style) ? text.replace(/^(?![-|]|\d+\.|$)/gm, '- ') : text
}

/** A draft may be another model's: what is no JSON has no pieces. */
const parseObject = (json: string): Record<string, Json> => {
  try {
    return JSON.parse(json) as Record<string, Json>
  } catch {
    return {}
  }
}

/** Values for the properties of an output's schema. */
export const fillOutput = (request: OfflineRequest): Record<string, Json> => {
  const draft = partText(request, titles.draft) || promptOf(request)
  const [text = '', json = '{}'] = draft.split(heading)
  const pieces = readPieces(partText(request, titles.structure))
  if (pieces.length === 0) return { answer: restyle(text, partText(request, titles.style)) }
  const values = parseObject(json)
  return Object.fromEntries(pieces.map(({ id }) => [id, values[id] ?? null]))
}
