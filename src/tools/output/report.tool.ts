import { z } from 'zod'
import { askForJson } from '../../graph/ask-for-json.ts'
import { streamField } from '../../graph/stream-field.ts'
import { defineTool } from '../../graph/tool.ts'
import { dataRule } from '../../state/context/fence.ts'
import { contextFields, draftOf } from '../../state/context.ts'
import { MasonError } from '../../state/errors.ts'
import { withSources } from './citations.ts'
import { outputBudget, outputContent } from './content.ts'
import { answerOf, writePieces } from './pieces.ts'

const instructions = `You write the final report of an agent, as Markdown, from what it found. Use only what stands in the draft, the conversation and the results.
Begin with what was found; then headings and short sections, tables for figures.
Behind each statement that rests on a result, cite its action: [^a12] for action 12. Cite only actions that you were shown. Do not list the sources: that is done for you.
Follow the output style. Write in the language of the request.
${dataRule}`

const reply = z.object({ answer: z.string().min(1) })

/** The final answer as a report: Markdown whose citations point at the actions it rests on. */
export default defineTool({
  name: 'report',
  description: 'Writes a report in Markdown with citations of the actions it rests on',
  kinds: ['output'],
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['output_structure'],
  async run(state, context, signal) {
    const { checkpoint, request, models, stream, log } = context
    if (state.output_structure.length > 0) return answerOf(context, await writePieces(state, context, signal))
    const draft = draftOf(state)
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
    const written = value?.answer ?? draft
    if (written === null)
      throw new MasonError(
        'model_bad_reply',
        'the model gave no report that could be read, and there is no draft',
        {
          remedy: 'submit the run again, or name another model for the output',
          detail: { usage },
        },
      )
    const { text, cited, unknown } = withSources(written, state)
    return checkpoint({
      summary: `Wrote a report that cites ${cited.length} ${cited.length === 1 ? 'action' : 'actions'}`,
      result: { answer: text, cited, ...(unknown.length > 0 && { unknown_citations: unknown }) },
      context: { type: 'text', content: text, important: true, usage_type: 'output' },
      relevance: 1,
      usage,
    })
  },
})
