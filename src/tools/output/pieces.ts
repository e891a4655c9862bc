import { z } from 'zod'
import { askForJson } from '../../graph/ask-for-json.ts'
import { numberAttempts } from '../../graph/number-attempts.ts'
import type { ToolContext } from '../../graph/tool.ts'
import { dataRule } from '../../state/context/fence.ts'
import { section } from '../../state/context/section.ts'
import { draftOf } from '../../state/context.ts'
import type { OutputPiece, RuntimeState, Usage } from '../../state/runtime-state.ts'
import { checkPiece, pieceJsonSchema } from '../../state/structure.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { type OutputState, outputBudget, outputContent } from './content.ts'

const instructions = `You fill the pieces of a structured answer from what an agent found. Use only what stands in the draft and the results.
Give every piece the type that is asked for.
${dataRule}`

/** Calls for one structured answer: the first for all pieces, the others for those that failed. */
const maxCalls = 3

type Written = { pieces: OutputPiece[]; faults: { id: string; fault: string }[]; usage: Usage }
export type OutputContext = ToolContext<'output_structure', Record<string, never>>

/** One call writes all pieces, each is checked against its type; only failing pieces are asked for again. */
export const writePieces = async (
  state: OutputState,
  { models, request, stream, log }: OutputContext,
  signal: AbortSignal,
): Promise<Written> => {
  const pieces: OutputPiece[] = state.output_structure.map(({ id, expected, type }) => ({
    id,
    expected,
    type,
    content: null,
  }))
  const content = outputContent(state, draftOf(state), outputBudget(models, request.models?.output))
  const onText = numberAttempts(stream)
  let usage = noUsage
  let faults = pieces.map(({ id }) => ({ id, fault: 'not written yet' }))
  for (let call = 1; call <= maxCalls && faults.length > 0; call++) {
    const open = pieces.filter(({ id }) => faults.some((fault) => fault.id === id))
    const written = await askForJson(
      models,
      {
        role: 'output',
        instructions,
        content: call === 1 ? content : `${content}\n\n${faultsText(faults)}`,
        schema: schemaOf(open),
        model: request.models?.output,
        onText: onText(),
      },
      signal,
      log,
    )
    usage = addUsage(usage, written.usage)
    faults = fill(open, (written.value ?? {}) as Record<string, unknown>)
  }
  return { pieces, faults, usage }
}

/** Puts what checks into the pieces; gives what does not. */
const fill = (open: OutputPiece[], written: Record<string, unknown>): Written['faults'] =>
  open.flatMap((piece) => {
    const value = written[piece.id]
    const checked =
      value === undefined ? { ok: false as const, fault: 'is missing' } : checkPiece(piece.type, value)
    if (!checked.ok) return [{ id: piece.id, fault: checked.fault }]
    piece.content = checked.value
    return []
  })

const faultsText = (faults: Written['faults']): string =>
  section('Correction', faults.map(({ id, fault }) => `- ${id}: ${fault}`).join('\n'))

const schemaOf = (pieces: readonly OutputPiece[]) =>
  z.record(z.string(), z.unknown()).meta({
    propertyNames: undefined,
    additionalProperties: false,
    properties: Object.fromEntries(pieces.map((piece) => [piece.id, propertyOf(piece)])),
    required: pieces.map(({ id }) => id),
  })

/** What is expected comes first; a type may have a word on its form to add. */
const propertyOf = ({ expected, type }: OutputPiece): Record<string, unknown> => {
  const { description, ...schema } = pieceJsonSchema(type)
  return {
    description: typeof description === 'string' ? `${expected} (${description})` : expected,
    ...schema,
  }
}

/** Lays the action of a structured answer; the answer of the run is the JSON text `{id: content}`. */
export const answerOf = (
  { checkpoint }: OutputContext,
  { pieces, faults, usage }: Written,
): Promise<RuntimeState> => {
  const answer = JSON.stringify(Object.fromEntries(pieces.map(({ id, content }) => [id, content])))
  const filled = pieces.length - faults.length
  return checkpoint(
    {
      summary: `Filled ${filled} of ${pieces.length} pieces`,
      result: { answer, ...(faults.length > 0 && { faults }) },
      context: { type: 'data', content: answer, important: true, usage_type: 'output' },
      relevance: 1,
      usage,
    },
    { output_structure: pieces },
  )
}
