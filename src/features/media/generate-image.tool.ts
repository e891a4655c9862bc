import { z } from 'zod'
import { readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { modelWords } from '../../state/provenance.ts'
import { findMissingModel, storeMedia, toMediaAction } from './media-results.ts'

/** Makes images from words; each is a file of the run. */
export default defineTool({
  name: 'generate_image',
  description: 'Makes images from a description. Each becomes a file of the run that edit_image can change.',
  kinds: ['call'],
  input: z.strictObject({
    prompt: z.string().min(1).max(32_000).describe('What the image shows, with its style'),
    n: z.int().min(1).max(4).optional().describe('How many images; 1 when left out'),
    size: z.string().max(20).optional().describe('Width x height such as 1024x1024, as the model allows'),
    quality: z.string().max(20).optional().describe('As the model allows, such as low or high'),
  }),
  reads: ['prompts', 'action_history'],
  writes: ['origin_files', 'preprocessed_files'],
  needs: ['media', 'blobs'],
  isAvailable: ({ media }) => media.has('text-to-image'),
  async run(state, context, signal) {
    const { prompt, ...parameters } = readCallInput(context)
    const missing = findMissingModel(context.media, 'generate_image', 'text-to-image')
    if (missing) return context.checkpoint(missing)
    const reply = await context.media.make(
      { category: 'text-to-image', prompt: modelWords(prompt), parameters },
      signal,
    )
    const stored = await storeMedia(state, context, 'image', reply.files)
    return context.checkpoint(...toMediaAction('Made an image', stored, { ...context, ...reply }))
  },
})
