import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { modelWords } from '../../state/provenance.ts'
import { findMissingModel } from './media-results.ts'
import { readRunMedia } from './run-media.ts'

/** Writes down what is said in a recording of the run. */
export default defineTool({
  name: 'transcribe',
  description: "Writes down what is said in one of the run's recordings (audio, or a video with sound).",
  kinds: ['call'],
  pure: true,
  provenance: 'file',
  input: z.strictObject({
    file: z.string().min(1).max(4096).describe("The name of one of the run's files"),
    language: z
      .string()
      .max(20)
      .optional()
      .describe('Its language as ISO 639-1, such as en, where it is known'),
    prompt: z.string().max(4000).optional().describe('Names and terms to expect, for their spelling'),
  }),
  reads: ['origin_files'],
  writes: [],
  needs: ['media', 'files'],
  isAvailable: ({ media }) => media.has('speech-to-text'),
  async run(state, context, signal) {
    const { file: name, language, prompt = null } = readCallInput(context)
    const missing = findMissingModel(context.media, 'transcribe', 'speech-to-text')
    if (missing) return context.checkpoint(missing)
    const read = await readRunMedia(state, context.files, [name], /^(audio|video)\/|octet-stream$/, signal)
    if (!read.ok) return context.checkpoint(errorDraft(`Could not transcribe ${name}`, read.error))
    const { text, usage, model } = await context.media.make(
      {
        category: 'speech-to-text',
        prompt: prompt === null ? null : modelWords(prompt),
        files: read.files,
        parameters: { ...(language && { language }) },
      },
      signal,
    )
    const said = text.trim() === '' ? 'Nothing is said in the recording.' : text
    return context.checkpoint({ ...resultDraft(`Transcribed ${name}`, said, { file: name, model }), usage })
  },
})
