import { parseJsonOrText } from '../../infra/lib/json-text.ts'
import { scrubValue } from '../../infra/secrets/scrubbed-log.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import { findRemedy } from '../../models/call/error-messages.ts'
import {
  type MeteredOutcome,
  type RequestServices,
  sendMeteredRequest,
} from '../../models/call/metered-request.ts'
import { emptyCanonicalRequest } from '../../models/call/models-port.ts'
import { estimateRequest } from '../../models/call/token-estimate.ts'
import { adminProbeBusinessId } from '../../models/metering/ledger-rows.ts'
import { findUndersizedLimit } from '../../models/metering/reservation-size.ts'
import type { CanonicalRequest, KeyEntry, ModelCaller, ModelEntry } from '../../models/ports/model-ports.ts'
import type { ModelProbes, ModelTestView } from '../../models/schemas/model-probe.ts'
import type { Json } from '../../state/runtime-state.ts'

/** What the probes of admins need. */
export type ModelProbeOptions = RequestServices & { scrubber: Pick<Scrubber, 'text'> }

/** Probes are in the ledger and count for the limits of their key, but belong to no business. docs/decisions/0016. */
const adminCaller: ModelCaller = { business_id: adminProbeBusinessId, user_id: null, run_id: null }
const defaultPrompt = 'Answer with the word OK.'
/** How many chunks of an answer an admin sees. */
const maxRawChunks = 200

const whitePixel = {
  name: 'white.png',
  mime_type: 'image/png',
  base64: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==',
}

/** The head of a RIFF WAVE of 4,000 samples of one byte, at 8,000 a second. Source: Microsoft's "Multimedia Programming Interface". */
const waveHead = Buffer.from('UklGRsQPAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YaAPAAA=', 'base64')
const silence = {
  name: 'silence.wav',
  mime_type: 'audio/wav',
  base64: Buffer.concat([waveHead, Buffer.alloc(4000, 0x80)]).toString('base64'),
}

/** A small request that fits the category. */
const toProbeRequest = (role: string, { category }: ModelEntry, prompt: string): CanonicalRequest => {
  const ask = { ...emptyCanonicalRequest, role }
  switch (category) {
    case 'embedding':
      return { ...ask, input: [prompt] }
    case 'rerank':
      return { ...ask, query: prompt, input: [prompt, 'something else'] }
    case 'text-to-image':
    case 'text-to-video':
    case 'text-to-speech':
      return { ...ask, prompt }
    case 'image-edit':
      return { ...ask, prompt, files: [whitePixel] }
    case 'speech-to-text':
      return { ...ask, files: [silence] }
    default:
      return { ...ask, prompt, messages: [{ role: 'user', content: prompt }] }
  }
}

/** The categories that a key is probed with, the cheapest first. */
const cheapness = ['embedding', 'text', 'reasoning', 'multimodal', 'rerank']
const toCheapnessRank = ({ category }: ModelEntry): number =>
  cheapness.includes(category) ? cheapness.indexOf(category) : cheapness.length

const isUsable = ({ active, secret }: KeyEntry): boolean => active && secret !== null

type ProbeResult = Omit<ModelTestView, 'raw' | 'parsed'> & { raw: unknown; parsed: unknown }

const toFailedProbe = (code: string, message: string): ProbeResult => ({
  ok: false,
  raw: null,
  parsed: null,
  usage: null,
  ms: 0,
  error: { code, message, place: null },
})

const toProbeResult = (
  { outcome, usage, ms }: MeteredOutcome,
  model: ModelEntry,
  raw: unknown,
): ProbeResult => {
  const spent = { usage, ms: Math.round(ms) }
  if (outcome.ok) return { ok: true, raw, parsed: outcome.result, ...spent, error: null }
  const { error, place = null } = outcome
  const message = `the model server ${error.what}; ${findRemedy(error, model)}`
  const body = raw ?? parseJsonOrText(outcome.raw ?? error.body ?? 'null')
  return { ok: false, raw: body, parsed: null, ...spent, error: { code: error.code, message, place } }
}

/** Small real calls without routes and grants, metered like all others; their results count for health. */
export const createModelAdmin = (options: ModelProbeOptions): ModelProbes => {
  const { registry, health, clock, scrubber } = options

  const runProbe = async (
    role: string,
    model: ModelEntry,
    key: KeyEntry | null,
    prompt: string,
    signal: AbortSignal,
  ): Promise<ProbeResult> => {
    const { name, error } = model.endpoint
    if (error) return toFailedProbe('secret_unreadable', `its endpoint "${name}" cannot be used: ${error}`)
    const chunks: unknown[] = []
    const request = {
      candidate: { model, key, probes: [], only: { model: true, key: true } },
      ask: toProbeRequest(role, model, prompt),
      role,
      caller: adminCaller,
      endsAtMs: clock.monotonicMs() + model.endpoint.timeouts.totalMs,
      onDelta: () => {},
      onRaw: (chunk: unknown) => {
        if (chunks.length < maxRawChunks) chunks.push(chunk)
      },
      anyway: true,
    }
    const sent = await sendMeteredRequest(options, request, signal)
    // the next read of the key must show the result
    await health.settled()
    if ('granted' in sent) {
      const undersized =
        key && findUndersizedLimit(key.limits, model, estimateRequest(request.ask, request.candidate))
      return toFailedProbe(
        'model_rate_limited',
        undersized
          ? `of the key "${key.label}", ${undersized}`
          : `the limit ${sent.limit} of the key "${key?.label}" is reached`,
      )
    }
    const raw = chunks.length === 0 ? null : chunks.length === 1 ? chunks[0] : chunks
    return toProbeResult(sent, model, raw)
  }

  return {
    async probe(keyId, signal) {
      const { models, keysByVendor } = registry.view
      const key = [...keysByVendor.values()].flat().find(({ id }) => id === keyId)
      if (key === undefined) return null
      const ofVendor = [...models.values()].filter(
        ({ vendor, active, endpoint }) =>
          vendor.id === key.vendor_id && active && endpoint.active && !endpoint.error,
      )
      const [model] = ofVendor.toSorted((a, b) => toCheapnessRank(a) - toCheapnessRank(b))
      const result =
        key.secret === null
          ? toFailedProbe('secret_unreadable', key.error ?? 'its secret cannot be read')
          : model === undefined
            ? toFailedProbe(
                'no_model_available',
                'its vendor has no active model, on an endpoint that can be used, to try it with',
              )
            : await runProbe('probe', model, key, defaultPrompt, signal)
      const { ok, ms, error } = scrubValue(result, scrubber)
      return { ok, ms, error }
    },
    async test(modelId, { prompt = defaultPrompt }, signal) {
      const { models, keysByVendor } = registry.view
      const model = [...models.values()].find(({ id }) => id === modelId)
      if (model === undefined) return null
      const keys = keysByVendor.get(model.vendor.id) ?? []
      const key =
        keys.find((one) => isUsable(one) && health.stateOf('key', one.id) === null) ??
        keys.find(isUsable) ??
        null
      const result =
        key === null && keys.length > 0
          ? toFailedProbe('no_model_available', 'none of the keys of its vendor is active and readable')
          : await runProbe('test', model, key, prompt, signal)
      const { raw, parsed, ...rest } = scrubValue(result, scrubber)
      return { ...rest, raw: raw as Json, parsed: parsed as Json }
    },
  }
}
