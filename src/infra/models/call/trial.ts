import type { ModelAdmin, ModelTestView } from '../../../state/registry/trial.ts'
import { adminTrials } from '../../../state/registry/usage.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { scrubValue } from '../../secrets/scrubbed-log.ts'
import type { Scrubber } from '../../secrets/scrubber.ts'
import type { Caller, KeyEntry, ModelAsk, ModelEntry, Registry } from '../ports.ts'
import { emptyAsk } from './port.ts'
import { remedyOf } from './remedy.ts'
import { type Made, makeRequest, type RequestParts } from './request.ts'

export type TrialOptions = RequestParts & {
  registry: Pick<Registry, 'view'>
  scrubber: Pick<Scrubber, 'text'>
}

/** No business asked for them: they are entered, and count for the limits of their key, but in no business's sums. */
const admin: Caller = { business_id: adminTrials, user_id: null, run_id: null }
const question = 'Answer with the word OK.'
/** How much of an answer an admin is shown. */
const mostPieces = 200

/** A small question, as the category asks. */
const askOf = (role: string, { category }: ModelEntry, prompt: string): ModelAsk => {
  const ask = { ...emptyAsk, role, stream: false }
  switch (category) {
    case 'embedding':
      return { ...ask, input: [prompt] }
    case 'rerank':
      return { ...ask, query: prompt, input: [prompt, 'something else'] }
    case 'text-to-image':
    case 'image-edit':
    case 'text-to-video':
    case 'text-to-speech':
    case 'speech-to-text':
      return { ...ask, prompt }
    default:
      return { ...ask, prompt, messages: [{ role: 'user', content: prompt }] }
  }
}

/** What a vendor is tried with: what costs least first. */
const cheapness = ['embedding', 'text', 'reasoning', 'multimodal', 'rerank']
const rank = ({ category }: ModelEntry): number =>
  cheapness.includes(category) ? cheapness.indexOf(category) : cheapness.length

const usable = ({ active, secret }: KeyEntry): boolean => active && secret !== null

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

type Tried = Omit<ModelTestView, 'raw' | 'parsed'> & { raw: unknown; parsed: unknown }

const failed = (code: string, message: string, ms = 0): Tried => ({
  ok: false,
  raw: null,
  parsed: null,
  usage: null,
  ms,
  error: { code, message, place: null },
})

const viewOf = ({ outcome, usage, ms }: Made, model: ModelEntry, raw: unknown): Tried => {
  const took = { usage, ms: Math.round(ms) }
  if (outcome.ok) return { ok: true, raw, parsed: outcome.result, ...took, error: null }
  const { fault, place = null } = outcome
  const message = `the model server ${fault.what}; ${remedyOf(fault, model)}`
  const shown = raw ?? jsonOf(outcome.raw ?? fault.body ?? 'null')
  return { ok: false, raw: shown, parsed: null, ...took, error: { code: fault.code, message, place } }
}

/** Real, small calls past routes and grants, metered as all others; what they tell of key and endpoint counts. */
export const createModelAdmin = (options: TrialOptions): ModelAdmin => {
  const { registry, health, clock, scrubber } = options

  const tryOut = async (
    role: string,
    model: ModelEntry,
    key: KeyEntry | null,
    prompt: string,
    signal: AbortSignal,
  ): Promise<Tried> => {
    const { name, fault } = model.endpoint
    if (fault) return failed('secret_unreadable', `its endpoint "${name}" cannot be used: ${fault}`)
    const pieces: unknown[] = []
    const request = {
      candidate: { model, key, probes: { key: false, endpoint: false } },
      ask: askOf(role, model, prompt),
      role,
      caller: admin,
      usedIds: [],
      endsAtMs: clock.monotonicMs() + model.endpoint.timeouts.totalMs,
      onDelta: () => {},
      onRaw: (piece: unknown) => {
        if (pieces.length < mostPieces) pieces.push(piece)
      },
      anyway: true,
    }
    const made = await makeRequest(options, request, signal)
    // who reads the key next sees what this told of it
    await health.settled()
    if ('granted' in made)
      return failed('model_rate_limited', `the limit ${made.limit} of the key "${key?.label}" is reached`)
    const raw = pieces.length === 0 ? null : pieces.length === 1 ? pieces[0] : pieces
    return viewOf(made, model, raw)
  }

  return {
    async probe(keyId, signal) {
      const { models, keysByVendor } = registry.view
      const key = [...keysByVendor.values()].flat().find(({ id }) => id === keyId)
      if (key === undefined) return null
      const ofVendor = [...models.values()].filter(
        ({ vendor, active, endpoint }) =>
          vendor.id === key.vendor_id && active && endpoint.active && !endpoint.fault,
      )
      const [model] = ofVendor.toSorted((a, b) => rank(a) - rank(b))
      const tried =
        key.secret === null
          ? failed('secret_unreadable', key.fault ?? 'its secret cannot be read')
          : model === undefined
            ? failed(
                'no_model_available',
                'its vendor has no active model, on an endpoint that can be used, to try it with',
              )
            : await tryOut('probe', model, key, question, signal)
      const { ok, ms, error } = scrubValue(tried, scrubber)
      return { ok, ms, error }
    },
    async test(modelId, { prompt = question }, signal) {
      const { models, keysByVendor } = registry.view
      const model = [...models.values()].find(({ id }) => id === modelId)
      if (model === undefined) return null
      const keys = keysByVendor.get(model.vendor.id) ?? []
      const key =
        keys.find((one) => usable(one) && health.stateOf('key', one.id) === null) ?? keys.find(usable) ?? null
      const tried =
        key === null && keys.length > 0
          ? failed('no_model_available', 'none of the keys of its vendor is active and readable')
          : await tryOut('test', model, key, prompt, signal)
      const { raw, parsed, ...rest } = scrubValue(tried, scrubber)
      return { ...rest, raw: raw as Json, parsed: parsed as Json }
    },
  }
}
