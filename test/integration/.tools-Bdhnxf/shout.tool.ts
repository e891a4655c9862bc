import { z } from 'zod'
import { defineTool } from '../../../src/graph/tool.ts'
export default defineTool({
  name: 'shout', description: 'Says it loud', kinds: ['call'], pure: true,
  input: z.strictObject({ word: z.string() }), reads: ['prompts'], writes: [],
  run: (state, { call, checkpoint }) =>
    checkpoint({ summary: 'Shouted', result: { text: call?.input.word.toUpperCase() + ' ' + state.prompts.length } }),
})