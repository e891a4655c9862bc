import { z } from 'zod'
import { readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { modelWords } from '../../state/provenance.ts'
import { findMissingModel, storeMedia, toMediaAction } from './media-results.ts'

/** Reads a text aloud; the recording is a file of the run. */
export default defineTool({
  name: 'speak',
  description: 'Reads a text aloud. The recording becomes a file of the run.',
  kinds: ['call'],
  input: z.strictObject({
    text: z.string().min(1).max(4096).describe('What is said, word for word'),
    voice: z.string().max(100).optional().describe('A voice of the model'),
    instructions: z.string().max(4000).optional().describe('How it is said, such as slowly and warmly'),
    response_format: z.enum(['mp3', 'wav', 'opus', 'aac', 'flac']).optional().describe('mp3 when left out'),
  }),
  reads: ['prompts', 'action_history'],
  writes: ['origin_files', 'preprocessed_files'],
  needs: ['media', 'blobs'],
  isAvailable: ({ media }) => media.has('text-to-speech'),
  async run(state, context, signal) {
    const { text: prompt, ...parameters } = readCallInput(context)
    const missing = findMissingModel(context.media, 'speak', 'text-to-speech')
    if (missing) return context.checkpoint(missing)
    const reply = await context.media.make(
      { category: 'text-to-speech', prompt: modelWords(prompt), parameters },
      signal,
    )
    const stored = await storeMedia(state, context, 'speech', reply.files)
    return context.checkpoint(...toMediaAction('Spoke the text', stored, { ...context, ...reply }))
  },
})
