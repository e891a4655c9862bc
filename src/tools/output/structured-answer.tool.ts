import { z } from 'zod'
import { contextFields } from '../../context/context.ts'
import { defineTool } from '../../graph/definitions.ts'
import { answerInFields } from './structured-output.ts'

/** The final answer in the pieces that were asked for, each of its own type. */
export default defineTool({
  name: 'structured_answer',
  description: 'Fills the pieces of the output structure, each checked against its type',
  kinds: ['output'],
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['output_structure'],
  run: answerInFields,
})
