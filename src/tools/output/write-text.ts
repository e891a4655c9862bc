import { z } from 'zod'
import { requestJson } from '../../graph/json-request.ts'
import { streamField } from '../../graph/text-streaming.ts'
import { MasonError } from '../../state/errors.ts'
import type { PromptText } from '../../state/provenance.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { computeOutputBudget, type OutputState, outputParts } from './output-prompt.ts'
import type { OutputContext } from './structured-output.ts'

const reply = z.object({ answer: z.string().min(1) })

/** The instructions of the model, and what the text is called in an error ("answer", "report"). */
type TextRequest = { instructions: PromptText; what: string }

/**
 * One call writes the whole text and streams it; the draft replaces a reply that cannot be read. Throws
 * `model_bad_reply` where there is neither.
 */
export const writeText = async (
  state: OutputState,
  { models, request, stream, log }: OutputContext,
  draft: string | null,
  { instructions, what }: TextRequest,
  signal: AbortSignal,
): Promise<{ text: string; usage: Usage }> => {
  const model = request.models?.output
  const { value, usage } = await requestJson(
    models,
    {
      role: 'output',
      instructions,
      parts: outputParts(state, draft, computeOutputBudget(models, model)),
      schema: reply,
      model,
      onText: streamField('answer', stream),
    },
    signal,
    log,
  )
  const text = value?.answer ?? draft
  if (text === null)
    throw new MasonError(
      'model_bad_reply',
      `the model gave no ${what} that could be read, and there is no draft`,
      {
        remedy: 'submit the run again, or name another model for the output',
        detail: { usage },
      },
    )
  return { text, usage }
}
