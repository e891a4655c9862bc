import { z } from 'zod'
import { defineTool } from '../../graph/tool.ts'
import { contextFields } from '../../state/context.ts'
import { answerOf, writePieces } from './pieces.ts'

/** The final answer in the pieces that were asked for, each of its own type. */
export default defineTool({
  name: 'structured_answer',
  description: 'Fills the pieces of the output structure, each checked against its type',
  kinds: ['output'],
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['output_structure'],
  run: async (state, context, signal) => answerOf(context, await writePieces(state, context, signal)),
})
