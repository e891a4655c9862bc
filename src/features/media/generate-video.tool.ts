import { z } from 'zod'
import { errorDraft, readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { parseJsonOrText } from '../../infra/lib/json-text.ts'
import { isMasonError, type MasonError } from '../../state/errors.ts'
import type { MediaJob, MediaReply, MediaRequest } from '../../state/ports/media.ts'
import { modelWords } from '../../state/provenance.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { findMissingModel, type StoredMedia, storeMedia, toMediaAction } from './media-results.ts'
import { readRunMedia } from './run-media.ts'

type Made = { files: StoredMedia[]; usage: Usage; model: string }

/** What a submission brought, as the effect ledger stores it. */
type Submission = { job: MediaJob } | Made | { refusal: string }

const isRefusal = (error: unknown): error is MasonError =>
  isMasonError(error) &&
  /^(model_|no_model_available$|not_found$)/.test(error.code) &&
  !(error.detail as { may_have_job?: boolean } | undefined)?.may_have_job

/**
 * Makes a video. The submission is an effect: a worker that takes over polls the stored job and never submits again. The run
 * waits between polls.
 */
export default defineTool({
  name: 'generate_video',
  description: 'Makes a short video from a description; this takes minutes. It becomes a file of the run.',
  kinds: ['call'],
  input: z.strictObject({
    prompt: z.string().min(1).max(32_000).describe('What happens in the video, with its style'),
    seconds: z.int().min(1).max(60).optional().describe('How long it is, as the model allows'),
    size: z.string().max(20).optional().describe('Width x height such as 1280x720, as the model allows'),
    image: z.string().max(4096).optional().describe("The name of one of the run's images to begin with"),
  }),
  reads: ['prompts', 'action_history', 'origin_files'],
  writes: ['origin_files', 'preprocessed_files'],
  needs: ['media', 'blobs', 'files'],
  isAvailable: ({ media }) => media.has('text-to-video'),
  async run(state, context, signal) {
    const { media, checkpoint } = context
    const { prompt, seconds, size, image } = readCallInput(context)
    const missing = findMissingModel(media, 'generate_video', 'text-to-video')
    if (missing) return checkpoint(missing)
    const fail = (text: string) => checkpoint(errorDraft('Could not make the video', text))
    const names = image === undefined ? [] : [image]
    const read = await readRunMedia(state, context.files, names, /^image\//, signal)
    if (!read.ok) return fail(read.error)
    const parameters = { ...(seconds && { seconds, duration: seconds }), ...(size && { size }) }
    const request: MediaRequest = {
      category: 'text-to-video',
      prompt: modelWords(prompt),
      files: read.files,
      parameters,
    }

    const store = async ({ files, usage, model }: MediaReply): Promise<Made> => ({
      files: await storeMedia(state, context, 'video', files),
      usage,
      model,
    })
    const submit = async (checkLease: () => void, until: AbortSignal): Promise<Submission> => {
      try {
        const sent = await media.submit(request, checkLease, until)
        if ('job' in sent) return sent
        return await store(sent.reply)
      } catch (error) {
        if (!isRefusal(error)) throw error
        return { refusal: error.remedy ? `${error.message}; ${error.remedy}` : error.message }
      }
    }
    const response = await context.effect({
      class: 'manual',
      storesResponse: true,
      request: JSON.stringify({ prompt, ...parameters, image }),
      send: async (_request, _key, checkLease, until) => JSON.stringify(await submit(checkLease, until)),
    })
    const submission = parseJsonOrText(response) as Submission | string | null
    // what a person confirmed in place of an answer
    if (submission === null || typeof submission === 'string')
      return fail('Error: the vendor has the job, but its id is not known here. Look for it at the vendor.')
    if ('refusal' in submission) return fail(`Error: ${submission.refusal}`)
    const finish = (files: StoredMedia[], made: { usage: Usage; model: string }) =>
      checkpoint(...toMediaAction('Made a video', files, { run: context.run, ...made }))
    if ('files' in submission) return finish(submission.files, submission)
    const { job } = submission
    const { status, ...made } = await context.wait({
      kind: 'job',
      refId: job.job_id,
      async poll(until) {
        const polled = await media.poll(job, request, until)
        if ('againInMs' in polled) return polled
        return { outcome: { status: 'succeeded', ...(await store(polled.reply)) } }
      },
    })
    if (status !== 'succeeded') return fail(`Error: ${made.error ?? `the job ${job.job_id} has ${status}`}`)
    const { files, ...by } = made as unknown as Made
    return finish(files, by)
  },
})
