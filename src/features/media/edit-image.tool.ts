import { z } from 'zod'
import { errorDraft, readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { modelWords } from '../../state/provenance.ts'
import { findMissingModel, storeMedia, toMediaAction } from './media-results.ts'
import { readRunMedia } from './run-media.ts'

/** Changes images of the run by words; the result is a new file, the original stays. */
export default defineTool({
  name: 'edit_image',
  description:
    "Changes one of the run's images, or combines several, by a description. The result is a new file.",
  kinds: ['call'],
  input: z.strictObject({
    files: z.array(z.string().min(1).max(4096)).min(1).max(16).describe("Names of the run's images"),
    prompt: z.string().min(1).max(32_000).describe('What to change, and what to leave'),
    size: z.string().max(20).optional().describe('Width x height such as 1024x1024, as the model allows'),
    quality: z.string().max(20).optional().describe('As the model allows, such as low or high'),
  }),
  reads: ['prompts', 'action_history', 'origin_files'],
  writes: ['origin_files', 'preprocessed_files'],
  needs: ['media', 'blobs', 'files'],
  isAvailable: ({ media }) => media.has('image-edit'),
  async run(state, context, signal) {
    const { prompt, files: names, ...parameters } = readCallInput(context)
    const missing = findMissingModel(context.media, 'edit_image', 'image-edit')
    if (missing) return context.checkpoint(missing)
    const read = await readRunMedia(state, context.files, names, /^image\//, signal)
    if (!read.ok) return context.checkpoint(errorDraft('Could not edit an image', read.error))
    const { files } = read
    const reply = await context.media.make(
      { category: 'image-edit', prompt: modelWords(prompt), files, parameters },
      signal,
    )
    const stored = await storeMedia(state, context, 'image', reply.files)
    return context.checkpoint(...toMediaAction('Edited an image', stored, { ...context, ...reply }))
  },
})
