import { z } from 'zod'
import { askForJson } from '../../graph/ask-for-json.ts'
import { streamField } from '../../graph/stream-field.ts'
import { defineTool } from '../../graph/tool.ts'
import { dataRule } from '../../state/context/fence.ts'
import { contextFields, draftOf } from '../../state/context.ts'
import { MasonError } from '../../state/errors.ts'
import { noUsage } from '../../state/usage.ts'
import { outputBudget, outputContent } from './content.ts'
import { answerOf, writePieces } from './pieces.ts'

const instructions = `You write the final answer of an agent from what it found. Use only what stands in the draft and the results.
Follow the output style. Answer in the language of the request.
${dataRule}`

const reply = z.object({ answer: z.string().min(1) })

/** The final answer as text: the planner's draft as it stands, or rewritten where a style or a model is asked for. */
export default defineTool({
  name: 'answer',
  description: 'Gives the final answer as text',
  kinds: ['output'],
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['output_structure'],
  async run(state, context, signal) {
    const { checkpoint, request, scenario, models, stream, log } = context
    const draft = draftOf(state)
    if (state.output_structure.length > 0) return answerOf(context, await writePieces(state, context, signal))
    const asIs =
      draft !== null && state.output_style === '' && !request.models?.output && !scenario?.prompts.output
    const written = asIs
      ? { value: null, usage: noUsage }
      : await askForJson(
          models,
          {
            role: 'output',
            instructions,
            content: outputContent(state, draft, outputBudget(models, request.models?.output)),
            schema: reply,
            model: request.models?.output,
            onText: streamField('answer', stream),
          },
          signal,
          log,
        )
    const answer = written.value?.answer ?? draft
    if (answer === null)
      throw new MasonError(
        'model_bad_reply',
        'the model gave no answer that could be read, and there is no draft',
        {
          remedy: 'submit the run again, or name another model for the output',
          detail: { usage: written.usage },
        },
      )
    return checkpoint({
      summary: asIs ? 'Passed the draft on as the answer' : 'Wrote the answer',
      result: { answer },
      context: { type: 'text', content: answer, important: true, usage_type: 'output' },
      relevance: 1,
      usage: written.usage,
    })
  },
})
