import { z } from 'zod'
import { contextFields, findDraft, isDraftFinal } from '../../context/context.ts'
import { defineTool } from '../../graph/definitions.ts'
import { dataRule, ownText } from '../../state/provenance.ts'
import { noUsage } from '../../state/token-usage.ts'
import { writeText } from './write-text.ts'

const instructions = ownText`You write the final answer of an agent from what it found. Use only what stands in the draft and the results.
Follow the output style. Answer in the language of the request.
${dataRule}`

/** The final answer as text, also with a structure: the planner's draft as it is, or rewritten where the request has a style or a model. */
export default defineTool({
  name: 'answer',
  description: 'Gives the final answer as text',
  kinds: ['output'],
  input: z.strictObject({}),
  reads: contextFields,
  writes: [],
  async run(state, context, signal) {
    const { checkpoint, request, scenario } = context
    const draft = findDraft(state)
    const asIs = draft !== null && isDraftFinal(state, request, scenario)
    const { text: answer, usage } = asIs
      ? { text: draft, usage: noUsage }
      : await writeText(state, context, draft, { instructions, what: 'answer' }, signal)
    return checkpoint({
      summary: asIs ? 'Passed the draft on as the answer' : 'Wrote the answer',
      result: { answer },
      context: { type: 'text', content: answer, important: true, usage_type: 'output' },
      relevance: 1,
      usage,
    })
  },
})
