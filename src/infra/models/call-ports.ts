import type { Models } from '../../state/ports.ts'
import type {
  Caller,
  CanonicalResult,
  KeyEntry,
  MeteredUsage,
  ModelAsk,
  ModelEntry,
  ResultDelta,
} from './ports.ts'

/** Which model and key a call goes to, and what comes of it. */

/** How a key or an endpoint that is not healthy stands. `due`: one call may try it now, whoever claims it first. */
export type Standing = {
  state: 'cooling' | 'probing' | 'disabled'
  until: string | null
  due: boolean
}

/** Health as this process knows it, from memory: choosing waits for nothing. Null: healthy. */
export type HealthLookup = { stateOf(subject: 'key' | 'endpoint', id: string): Standing | null }

/** What a call may go to. `probes` names what is not healthy but due: it is to be claimed before it is used. */
export type Candidate = {
  model: ModelEntry
  key: KeyEntry | null
  probes: { key: boolean; endpoint: boolean }
}

/**
 * What a call did not go to, and why. `key_label` null: it concerns the model as a whole. `why` is for admins; `told` is
 * what a business is told in its place, where `why` names more than aliases and reasons.
 */
export type PassedOver = { model: string; key_label: string | null; why: string; told?: string }

/** Which model is wanted: an alias, else the route of the role, else that of the category. */
export type Wanted = {
  role: string
  model?: string
  category?: string
  /** What is asked holds images: only models that see are chosen. */
  images?: boolean
  /** What was shown cannot be taken back: no new attempt after the first delta, and no waiting for keys that cool. */
  oneShot?: boolean
}

/** What became of one provider request, for the admin and for the error when nothing answered. */
export type Attempt = { model: string; key_label: string | null; code: string; message: string }

export type Answered = {
  result: CanonicalResult
  /** The alias that answered. */
  model: string
  /** Of all requests of this call, failed ones too. */
  usage: MeteredUsage
  attempts: readonly Attempt[]
}

/** THE call path: route -> key -> reservation -> request -> parse -> ledger. Nodes get it through `for`. */
export type ModelService = {
  /**
   * `onDelta`'s `attempt` counts from 1; a new one voids what came before. Throws MasonError: `no_model_available`
   * (detail.candidates: what was passed over and why) or the `model_*` code of the last attempt; `not_found` for an
   * alias that there is not.
   */
  ask(
    wanted: Wanted,
    ask: ModelAsk,
    caller: Caller,
    onDelta: (delta: ResultDelta, attempt: number) => void,
    signal: AbortSignal,
  ): Promise<Answered>
  /** The port of the graph, on behalf of one caller. */
  for(caller: Caller): Models
  /** The models that a caller could call, by alias, whatever their health: active, with a key for him. None given: all active ones. */
  list(
    caller?: Caller,
  ): readonly { name: string; vendor: string; category: string; capabilities: readonly string[] }[]
}
