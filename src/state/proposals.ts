import { idSchema } from './run-request.ts'
import { type OutputField, outputTypeSchema } from './runtime-state.ts'
import { cutText } from './text/cut-text.ts'

/** What a model may propose of a turn that its request leaves open: kept to one line each, and valid for that turn only. */

const maxLine = 200

/** What a model proposes beside the request is a line of its prompt, no section. */
export const toProposalLine = (text: string): string => cutText(text.replaceAll(/\s+/g, ' ').trim(), maxLine)

/** As many as a request may ask for. */
const maxFields = 50

/** The fields that were proposed, each under an id that can be a key; of equal ids the first. */
export const toProposedFields = (fields: readonly Omit<OutputField, 'content'>[]): OutputField[] => {
  const byId = new Map<string, OutputField>()
  for (const { id, expected, type } of fields)
    if (idSchema.safeParse(id).success && !byId.has(id))
      byId.set(id, { id, type, expected: toProposalLine(expected), content: null })
  return [...byId.values()].slice(0, maxFields)
}

/** A field in one line, as prompts have it: `id (type): expected`. A name alone is a text; one that can be no key gets an id. */
export const parseFieldLine = (line: string, at: number): Omit<OutputField, 'content'> => {
  const colon = line.search(/[:：]/)
  const head = (colon < 0 ? line : line.slice(0, colon)).trim()
  const [form = '', type] = /\((\w+)\)$/.exec(head) ?? []
  const name = head.slice(0, head.length - form.length).trim()
  const id = name.normalize('NFKD').replaceAll(/\p{M}/gu, '').replaceAll(/\s/g, '_')
  return {
    id: idSchema.safeParse(id).success ? id : `field_${at + 1}`,
    expected: (colon < 0 ? '' : line.slice(colon + 1).trim()) || name,
    type: outputTypeSchema.catch('text').parse(type),
  }
}
