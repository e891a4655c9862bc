import { z } from 'zod'
import { contextFields, findDraft } from '../../context/context.ts'
import { defineTool } from '../../graph/definitions.ts'
import { dataRule, ownText } from '../../state/provenance.ts'
import { addSources } from './citations.ts'
import { answerInFields } from './structured-output.ts'
import { writeText } from './write-text.ts'

const instructions = ownText`You write the final report of an agent, as Markdown, from what it found. Use only what stands in the draft, the conversation and the results.
Begin with what was found; then headings and short sections, tables for figures.
Behind each statement that rests on a result, cite its action: [^a12] for action 12. Cite only actions that you were shown. Do not list the sources: that is done for you.
Follow the output style. Write in the language of the request.
${dataRule}`

/** The final answer as a report: Markdown whose citations point at the actions it rests on. */
export default defineTool({
  name: 'report',
  description: 'Writes a report in Markdown with citations of the actions it rests on',
  kinds: ['output'],
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['output_structure'],
  async run(state, context, signal) {
    if (state.output_structure.length > 0) return answerInFields(state, context, signal)
    const wanted = { instructions, what: 'report' }
    const { text: written, usage } = await writeText(state, context, findDraft(state), wanted, signal)
    const { text, cited, unknown } = addSources(written, state)
    return context.checkpoint({
      summary: `Wrote a report that cites ${cited.length} ${cited.length === 1 ? 'action' : 'actions'}`,
      result: { answer: text, cited, ...(unknown.length > 0 && { unknown_citations: unknown }) },
      context: { type: 'text', content: text, important: true, usage_type: 'output' },
      relevance: 1,
      usage,
    })
  },
})
