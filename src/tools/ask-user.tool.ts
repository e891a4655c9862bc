import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../graph/call-drafts.ts'
import { defineTool } from '../graph/definitions.ts'
import { cutText } from '../state/text/cut-text.ts'

const expiresInMs = 7 * 24 * 60 * 60 * 1000

/** JSON Schema of the answer: one of the options where there are some, else a value of the type. */
const answerSchema = (
  type: 'text' | 'number' | 'boolean',
  options: readonly string[],
): Record<string, unknown> => {
  if (options.length > 0) return { type: 'string', enum: options }
  return type === 'text' ? { type: 'string', minLength: 1 } : { type }
}

export default defineTool({
  name: 'ask_user',
  description:
    'Asks the user one question and waits for the answer, for days if need be. Only for what no tool can find out and ' +
    'the task cannot do without.',
  kinds: ['call'],
  provenance: 'user',
  input: z.strictObject({
    question: z.string().min(1).max(4000).describe('The question'),
    options: z.array(z.string().min(1).max(500)).min(2).max(20).optional().describe('To choose from'),
    answer_type: z.enum(['text', 'number', 'boolean']).optional().describe('text when left out'),
  }),
  reads: [],
  writes: [],
  async run(_state, context) {
    const { question, options: offered = [], answer_type = 'text' } = readCallInput(context)
    const options = [...new Set(offered)]
    const schema = answerSchema(answer_type, options)
    const reply = await context.ask({ question, schema, options, expires_in_ms: expiresInMs })
    const asked = `Asked "${cutText(question, 100)}"`
    if (reply.kind === 'expired') {
      const text =
        'Error: No answer came within 7 days. Go on without it, and say in the answer what is open.'
      return context.checkpoint(errorDraft(`${asked}; no answer came in time`, text))
    }
    const answer = z.json().parse(reply.answer)
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer)
    // the words of an option are those of the model that asked
    const label = options.length > 0 ? { provenance: 'agent' } : {}
    return context.checkpoint(
      resultDraft(`${asked} and got "${cutText(text, 60)}"`, text, { answer, ...label }),
    )
  },
})
