import { z } from 'zod'
import { askForJson } from '../../graph/ask-for-json.ts'
import { streamField } from '../../graph/stream-field.ts'
import { MasonError } from '../../state/errors.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { type OutputState, outputBudget, outputContent } from './content.ts'
import type { OutputContext } from './pieces.ts'

const reply = z.object({ answer: z.string().min(1) })

/** What is to be written: what the model is told, and what it is called where there is none ("answer", "report"). */
type Wanted = { instructions: string; what: string }

/**
 * One call writes the whole text and streams it; the draft stands in for a reply that cannot be read. Throws
 * `model_bad_reply` where there is neither.
 */
export const writeText = async (
  state: OutputState,
  { models, request, stream, log }: OutputContext,
  draft: string | null,
  { instructions, what }: Wanted,
  signal: AbortSignal,
): Promise<{ text: string; usage: Usage }> => {
  const model = request.models?.output
  const { value, usage } = await askForJson(
    models,
    {
      role: 'output',
      instructions,
      content: outputContent(state, draft, outputBudget(models, model)),
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
