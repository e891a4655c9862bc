import { createCallError } from '../../models/call/call-errors.ts'
import { pollMeteredJob } from '../../models/call/metered-request.ts'
import type { ModelRequests } from '../../models/call/model-requests.ts'
import { emptyCanonicalRequest } from '../../models/call/models-port.ts'
import type { ModelResponse } from '../../models/ports/call-ports.ts'
import {
  type CanonicalRequest,
  type CanonicalResult,
  type Media,
  type ModelCaller,
  type ModelEntry,
  toPlainUsage,
} from '../../models/ports/model-ports.ts'
import { canCallCategory } from '../../models/routing/choose-model-and-key.ts'
import type { Transport } from '../../models/transport/http-exchange.ts'
import { downloadMedia } from '../../models/transport/media-download.ts'
import { MasonError } from '../../state/errors.ts'
import type {
  MediaCategory,
  MediaFile,
  MediaModels,
  MediaReply,
  MediaRequest,
} from '../../state/ports/media.ts'
import type { Json } from '../../state/runtime-state.ts'
import { noUsage } from '../../state/token-usage.ts'

type MediaServices = ModelRequests & { transport: Transport }

/** How long after its submission a job is polled. */
const maxJobMs = 30 * 60_000

const toCanonicalRequest = ({
  category,
  prompt,
  files = [],
  parameters = {},
}: MediaRequest): CanonicalRequest => ({
  ...emptyCanonicalRequest,
  role: category,
  prompt,
  files: files.map(({ name, mime_type, bytes }) => ({
    name,
    mime_type,
    base64: Buffer.from(bytes).toString('base64'),
  })),
  parameters: Object.fromEntries(
    Object.entries(parameters).filter((entry): entry is [string, Json] => entry[1] !== undefined),
  ),
})

/** By their first bytes, where a vendor sends base64 without a type. Source: the specifications of the formats. */
const signatures: readonly (readonly [pattern: RegExp, mimeType: string])[] = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF....WEBP/s, 'image/webp'],
  [/^RIFF....WAVE/s, 'audio/wav'],
  [/^(ID3|\xff[\xfb\xf3\xf2])/, 'audio/mpeg'],
  [/^OggS/, 'audio/ogg'],
  [/^fLaC/, 'audio/flac'],
  [/^....ftyp/s, 'video/mp4'],
  [/^.E\xdf\xa3/, 'video/webm'],
]
const fallbackTypes: Record<MediaCategory, string> = {
  'text-to-image': 'image/png',
  'image-edit': 'image/png',
  'speech-to-text': 'text/plain',
  'text-to-speech': 'audio/mpeg',
  'text-to-video': 'video/mp4',
}

const toMediaFile = (
  { base64, mime_type }: { base64: string; mime_type: string | null },
  category: MediaCategory,
): MediaFile => {
  const bytes = Buffer.from(base64, 'base64')
  const head = bytes.subarray(0, 16).toString('latin1')
  const found = signatures.find(([pattern]) => pattern.test(head))?.[1]
  const named = mime_type !== null && /^(image|audio|video)\//.test(mime_type) ? mime_type : null
  return { bytes, mime_type: named ?? found ?? fallbackTypes[category] }
}

const listMedia = ({ images, video, audio }: CanonicalResult): Media[] => [
  ...images,
  ...(video ? [video] : []),
  ...(audio ? [audio] : []),
]

/** The media models as tools see them, on behalf of one caller. */
export const createMediaPort = (services: MediaServices, caller: ModelCaller): MediaModels => {
  const { ask, registry, clock, transport } = services
  const findModel = (name: string): ModelEntry => {
    const model = registry.view.models.get(name)
    if (model) return model
    throw new MasonError('not_found', `the model "${name}" is no longer in the registry`)
  }

  const fetchFile = async (
    medium: Media,
    category: MediaCategory,
    model: ModelEntry,
    signal: AbortSignal,
  ): Promise<MediaFile> => {
    if ('base64' in medium) return toMediaFile(medium, category)
    const { endpoint } = model
    const endsAtMs = clock.monotonicMs() + endpoint.timeouts.totalMs
    const downloaded = await downloadMedia(transport, { url: medium.url, endpoint, endsAtMs }, signal)
    if (!('error' in downloaded)) return toMediaFile(downloaded, category)
    const candidate = { model, key: null, probes: [], only: { model: true, key: true } }
    throw createCallError({ candidate, error: downloaded.error }, { attempts: 1, usage: noUsage })
  }

  const toReply = async (
    { result, model, usage }: Pick<ModelResponse, 'result' | 'model' | 'usage'>,
    { category }: MediaRequest,
    signal: AbortSignal,
  ): Promise<MediaReply> => ({
    text: result.text,
    files: await Promise.all(
      listMedia(result).map((medium) => fetchFile(medium, category, findModel(model), signal)),
    ),
    usage: toPlainUsage(usage),
    model,
  })

  const send = (request: MediaRequest, beforeSubmit: (() => void) | null, signal: AbortSignal) => {
    const { category } = request
    const selector = { role: category, category, ...(beforeSubmit && { beforeSubmit }) }
    return ask(selector, toCanonicalRequest(request), caller, () => {}, signal)
  }

  return {
    has: (category) => canCallCategory(services.chooser, registry.view, category, caller),
    make: async (request, signal) => toReply(await send(request, null, signal), request, signal),
    async submit(request, beforeSend, signal) {
      const response = await send(request, beforeSend, signal)
      const { result, model, key_id, usage } = response
      if (result.job === null || result.video !== null)
        return { reply: await toReply(response, request, signal) }
      const submitted_at = clock.now().toISOString()
      return { job: { model, key_id, job_id: result.job.id, submitted_at, usage: toPlainUsage(usage) } }
    },
    async poll(job, request, signal) {
      const model = findModel(job.model)
      const key = registry.view.keysByVendor.get(model.vendor.id)?.find(({ id }) => id === job.key_id) ?? null
      if (key === null && job.key_id !== null)
        throw new MasonError('not_found', `the key that made the job ${job.job_id} was deleted`, {
          remedy: 'look the job up at the vendor',
        })
      const ageMs = clock.now().getTime() - Date.parse(job.submitted_at)
      const candidate = { model, key, probes: [], only: { model: true, key: true } }
      const outcome = await pollMeteredJob(
        services,
        {
          candidate,
          ask: toCanonicalRequest(request),
          role: request.category,
          caller,
          endsAtMs: clock.monotonicMs() + Math.max(0, maxJobMs - ageMs),
          onDelta: () => {},
        },
        job.job_id,
        signal,
      )
      if ('againInMs' in outcome) return outcome
      if (outcome.ok) {
        const { result } = outcome
        const usage = { ...job.usage, cached_tokens: 0, reasoning_tokens: 0 }
        return {
          reply: await toReply({ result, model: job.model, usage: result.usage ?? usage }, request, signal),
        }
      }
      if (outcome.error.code === 'model_timeout')
        throw new MasonError(
          'model_timeout',
          `the job ${job.job_id} of "${job.model}" was not done in time`,
          {
            remedy: 'look it up at the vendor, or ask for something smaller',
          },
        )
      throw createCallError({ candidate, error: outcome.error }, { attempts: 1, usage: job.usage })
    },
  }
}
