import type { DialectName, Models } from '../../state/ports/models.ts'
import type {
  CanonicalRequest,
  CanonicalResult,
  KeyEntry,
  MeteredUsage,
  ModelCaller,
  ModelEntry,
  ResultDelta,
} from './model-ports.ts'

/**
 * What can be unhealthy: an endpoint for all its models, a model on its endpoint, a key for all models, a key with one
 * model.
 */
export type HealthSubject = 'endpoint' | 'model' | 'key' | 'key_model'
/** One of them; the id of `key_model` is those of the key and the model. */
export type SubjectRef = { subject: HealthSubject; id: string }

/** The subjects that a request with a model and a key depends on. */
export const listHealthSubjects = (
  { id, endpoint }: Pick<ModelEntry, 'id' | 'endpoint'>,
  key: Pick<KeyEntry, 'id'> | null,
): SubjectRef[] => [
  { subject: 'endpoint', id: endpoint.id },
  { subject: 'model', id },
  ...(key === null
    ? []
    : [
        { subject: 'key' as const, id: key.id },
        { subject: 'key_model' as const, id: `${key.id} ${id}` },
      ]),
]

/**
 * Whose request failed, or is about to be sent. `prompt`: a hash of what is asked. `excuses`: what the call may try although
 * it is closed.
 */
export type FailureSource = {
  business: string
  run: string | null
  prompt(): string
  excuses?(subject: HealthSubject, id: string): boolean
}

/** The state of a subject that is not healthy. `due`: one call may probe it now, the first that claims it. */
export type HealthStatus = {
  state: 'cooling' | 'probing' | 'disabled'
  until: string | null
  due: boolean
}

/**
 * Health as this process knows it, from memory. Null: healthy, for this source: what one business's requests met
 * alone closes nothing for others. Without a source: as admins see it.
 */
export type HealthLookup = {
  stateOf(subject: HealthSubject, id: string, source?: FailureSource): HealthStatus | null
}

/**
 * A model and key that a call may use. `probes`: what is not healthy but due, all of it must be claimed before use.
 * `only`: the call has no other model, or no other key of it.
 */
export type Candidate = {
  model: ModelEntry
  key: KeyEntry | null
  probes: readonly SubjectRef[]
  only: { model: boolean; key: boolean }
}

/**
 * A candidate that a call skipped. `key_label` null: the whole model. `reason` is for admins; `publicReason` replaces it
 * for a business, where `reason` names more than aliases and reasons.
 */
export type SkippedCandidate = {
  model: string
  key_label: string | null
  reason: string
  publicReason?: string
}

/** The model to call: an alias, else the route of the role, else that of the category. */
export type ModelSelector = {
  role: string
  model?: string
  category?: string
  /** Only models of this dialect are chosen. */
  dialect?: DialectName
  /** The request has images: only models with vision are chosen. */
  images?: boolean
  /** How long the call may wait between its tries, in all; absent: as long as its models have for an answer. */
  patienceMs?: number
  /** How long it may wait of that while no request was sent, because all its models are known to be closed. */
  closedPatienceMs?: number
  /** While vendors are down it waits for no try after so many milliseconds. */
  timeLeftMs?: number
  /** Sent text cannot be withdrawn: no new attempt after the first delta, and no wait for keys that cool. */
  oneShot?: boolean
  /** The request makes a job: no new attempt after one that the vendor may have taken. Called before the first byte. */
  beforeSubmit?: () => void
}

/** A provider request that failed, for admins and for the error of the call. */
export type ModelAttempt = { model: string; key_label: string | null; code: string; message: string }

/** The answer of a call. */
export type ModelResponse = {
  result: CanonicalResult
  /** The alias that answered. */
  model: string
  /** Of all requests of this call, also failed ones. */
  usage: MeteredUsage
  attempts: readonly ModelAttempt[]
  /** The key that was used: only its account knows the job of the answer. */
  key_id: string | null
}

/** The call path: route -> key -> reservation -> request -> parse -> ledger. Nodes get it through `for`. */
export type ModelGateway = {
  /**
   * `onDelta`'s `attempt` counts from 1; a new one discards the text of the one before. Throws MasonError:
   * `no_model_available` (detail.candidates: the candidates and why each failed), the `model_*` code of the last attempt,
   * or `not_found` for an unknown alias.
   */
  ask(
    selector: ModelSelector,
    ask: CanonicalRequest,
    caller: ModelCaller,
    onDelta: (delta: ResultDelta, attempt: number) => void,
    signal: AbortSignal,
  ): Promise<ModelResponse>
  /** The port of the graph, on behalf of one caller. */
  for(caller: ModelCaller): Models
  /** The models that a caller can call, whatever their health: active, with a key for the caller. No caller: all active models. */
  list(
    caller?: ModelCaller,
  ): readonly { name: string; vendor: string; category: string; capabilities: readonly string[] }[]
}
