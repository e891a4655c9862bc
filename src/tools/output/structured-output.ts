import { z } from 'zod'
import { findDraft, isStructureRequested } from '../../context/context.ts'
import { part, titles } from '../../context/sections.ts'
import type { ToolContext } from '../../graph/definitions.ts'
import { requestJson } from '../../graph/json-request.ts'
import { numberAttempts } from '../../graph/text-streaming.ts'
import { checkFieldValue, fieldJsonSchema, type OutputError } from '../../state/output-fields.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import { createDataFence, type DataFence, dataRule, derivedLabel, ownText } from '../../state/provenance.ts'
import type { OutputField, RuntimeState } from '../../state/runtime-state.ts'
import { addUsage, noUsage } from '../../state/token-usage.ts'
import { computeOutputBudget, type OutputState, outputParts } from './output-prompt.ts'

const instructions = ownText`You fill the pieces of a structured answer from what an agent found. Use only what stands in the draft and the results.
Give every piece the type that is asked for.
${dataRule}`

/** Calls for one structured answer: the first for all pieces, the others for those that failed. */
const maxCalls = 3

/** The context of an output tool that fills the structure. */
export type OutputContext = ToolContext<'output_structure', Record<string, never>>

/**
 * Appends the action of a structured answer, the JSON text `{id: content}`. One call writes all pieces, each is checked
 * against its type; only failing pieces are asked for again.
 */
export const answerInFields = async (
  state: OutputState,
  { models, request, stream, log, checkpoint }: OutputContext,
  signal: AbortSignal,
): Promise<RuntimeState> => {
  const pieces: OutputField[] = state.output_structure.map((piece) => ({ ...piece, content: null }))
  const parts = outputParts(state, findDraft(state), computeOutputBudget(models, request.models?.output))
  const onText = numberAttempts(stream)
  let usage = noUsage
  let errors: OutputError[] = pieces.map(({ id }) => ({ id, error: 'not written yet' }))
  for (let call = 1; call <= maxCalls && errors.length > 0; call++) {
    const open = pieces.filter(({ id }) => errors.some((error) => error.id === id))
    const written = await requestJson(
      models,
      {
        role: 'output',
        instructions,
        parts: call === 1 ? parts : [...parts, correctionOf(errors, createDataFence(state))],
        schema: toSchema(open, isStructureRequested(state)),
        prefers: (value) => open.every(({ id }) => id in value),
        model: request.models?.output,
        onText: onText(),
      },
      signal,
      log,
    )
    usage = addUsage(usage, written.usage)
    errors = fillFields(open, (written.value ?? {}) as Record<string, unknown>)
  }
  const answer = JSON.stringify(Object.fromEntries(pieces.map(({ id, content }) => [id, content])))
  return checkpoint(
    {
      summary: `Filled ${pieces.length - errors.length} of ${pieces.length} pieces`,
      result: { answer, ...(errors.length > 0 && { errors }) },
      context: { type: 'data', content: answer, important: true, usage_type: 'output' },
      relevance: 1,
      usage,
    },
    { output_structure: pieces },
  )
}

/** Puts what checks into the pieces; gives what does not. */
const fillFields = (open: OutputField[], written: Record<string, unknown>): OutputError[] =>
  open.flatMap((piece) => {
    const value = written[piece.id]
    const checked =
      value === undefined ? { ok: false as const, error: 'is missing' } : checkFieldValue(piece.type, value)
    if (!checked.ok) return [{ id: piece.id, error: checked.error }]
    piece.content = checked.value
    return []
  })

const correctionOf = (errors: OutputError[], fence: DataFence): PromptPart => {
  const lines = errors.map(({ id, error }) => `- ${id}: ${error}`)
  return part(titles.correction, fence(lines.join('\n'), derivedLabel), 'agent')
}

const toSchema = (pieces: readonly OutputField[], isRequested: boolean) =>
  z.record(z.string(), z.unknown()).meta({
    propertyNames: undefined,
    additionalProperties: false,
    properties: Object.fromEntries(pieces.map((piece) => [piece.id, toProperty(piece, isRequested)])),
    required: pieces.map(({ id }) => id),
  })

/**
 * What is expected comes first; a type may have a word on its form to add. What a model proposed may be a file's words: a
 * schema has no fence, and the prompt says it within one.
 */
const toProperty = ({ expected, type }: OutputField, isRequested: boolean): Record<string, unknown> => {
  const { description, ...schema } = fieldJsonSchema(type)
  const form = typeof description === 'string' ? description : ''
  if (!isRequested) return { ...(form && { description: form }), ...schema }
  return { description: form ? `${expected} (${form})` : expected, ...schema }
}
