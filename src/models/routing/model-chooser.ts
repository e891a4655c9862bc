import { MasonError } from '../../state/errors.ts'
import type {
  Candidate,
  HealthLookup,
  HealthStatus,
  ModelSelector,
  SkippedCandidate,
} from '../ports/call-ports.ts'
import type { KeyEntry, ModelCaller, ModelEntry, RegistryView } from '../ports/model-ports.ts'
import { canServeCategory, createCandidateOrders, followsRules } from './candidate-order.ts'
import { type CallerKeyPools, createKeyPools, type VendorKeyPools } from './key-pools.ts'
import { type CandidateOrder, createCandidateIterator, type RoutingLoad } from './routing-strategy.ts'
import { noVisionReason, supportsImages } from './vision.ts'

/** The candidates of one call, best first. Each is checked only when it is taken, so its health is current. */
export type ModelChoice = {
  candidates: Iterable<Candidate>
  /** The candidates skipped so far; it grows while `candidates` are taken. */
  passedOver: readonly SkippedCandidate[]
}

/** Chooses the model and key of a call. */
export type ModelChooser = {
  /** Whether a caller can use a model, whatever its health: it is active and set up, and has a key for the caller. */
  isOpenTo(view: RegistryView, model: ModelEntry, caller: ModelCaller): boolean
  /** Throws `not_found` for an unknown alias, `model_bad_request` for images to a model that only follows rules. */
  choose(view: RegistryView, selector: ModelSelector, caller: ModelCaller): ModelChoice
  /** The active models that may serve, whatever their health and keys. */
  listActive(view: RegistryView, selector: ModelSelector): ModelEntry[]
  /** Counts a call to this model as in flight until it is disposed; for `least-busy`. */
  busy(modelId: string): Disposable
}

/** What is computed once per view. */
type Plan = {
  orderFor(selector: ModelSelector): CandidateOrder | null
  poolsFor(vendorId: string, caller: ModelCaller): CallerKeyPools
  /** By vendor, the shared key that is next. */
  turns(): Map<string, string | null>
}

/** Continues the turns of the previous plan, so that a change of the registry does not favor the first keys. */
const createPlan = (view: RegistryView, before: ReadonlyMap<string, string | null>): Plan => {
  const pools = new Map<string, VendorKeyPools>()
  return {
    turns: () => new Map([...before, ...[...pools].map(([id, of]) => [id, of.nextSharedKey()] as const)]),
    orderFor: createCandidateOrders(view),
    poolsFor(vendorId, caller) {
      let ofVendor = pools.get(vendorId)
      if (!ofVendor) {
        ofVendor = createKeyPools(view.keysByVendor.get(vendorId) ?? [], before.get(vendorId) ?? null)
        pools.set(vendorId, ofVendor)
      }
      return ofVendor.forCaller(caller)
    },
  }
}

/** Chooses models and keys from the view in memory; `random` returns numbers from 0 up to 1. */
export const createModelChooser = (
  health: HealthLookup,
  random: () => number = Math.random,
): ModelChooser => {
  const plans = new WeakMap<RegistryView, Plan>()
  let latest: Plan | null = null
  const inFlight = new Map<string, number>()
  const load: RoutingLoad = { random, inFlight: (modelId) => inFlight.get(modelId) ?? 0 }
  const planFor = (view: RegistryView): Plan => {
    const cached = plans.get(view)
    if (cached) return cached
    const plan = createPlan(view, latest?.turns() ?? new Map())
    plans.set(view, plan)
    latest = plan
    return plan
  }
  return {
    isOpenTo(view, model, caller) {
      if (findModelSkipReason(model, null) !== null) return false
      const { pools, grantedToOthers } = planFor(view).poolsFor(model.vendor.id, caller)
      const keys = pools.flatMap((pool) => pool.keys)
      return keys.length === 0
        ? grantedToOthers === 0
        : keys.some((key) => findKeySkipReason(key, null) === null)
    },
    choose(view, selector, caller) {
      const plan = planFor(view)
      const order = plan.orderFor(selector)
      if (!order)
        throw new MasonError('not_found', `there is no model "${selector.model}"`, {
          remedy: 'GET /v1/models lists the models',
        })
      // an alias is not checked for vision; only models that follow rules are known not to have it
      const isNamed = selector.model !== undefined
      if (selector.images && isNamed && order.members.some(({ entry }) => entry && followsRules(entry)))
        throw new MasonError('model_bad_request', `"${selector.model}" cannot see images`, {
          remedy: 'name a model with vision: GET /v1/models lists the models',
        })
      const passedOver: SkippedCandidate[] = []
      const needsVision = selector.images === true && !isNamed
      return {
        candidates: generateCandidates(order, plan, caller, health, load, needsVision, passedOver),
        passedOver,
      }
    },
    listActive(view, selector) {
      const members = planFor(view).orderFor(selector)?.members ?? []
      return members.flatMap(({ entry }) => (entry?.active ? [entry] : []))
    },
    busy(modelId) {
      inFlight.set(modelId, load.inFlight(modelId) + 1)
      let done = false
      return {
        [Symbol.dispose]() {
          if (done) return
          done = true
          const count = load.inFlight(modelId) - 1
          if (count > 0) inFlight.set(modelId, count)
          else inFlight.delete(modelId)
        },
      }
    },
  }
}

function* generateCandidates(
  order: CandidateOrder,
  plan: Plan,
  caller: ModelCaller,
  health: HealthLookup,
  load: RoutingLoad,
  needsVision: boolean,
  passedOver: SkippedCandidate[],
): Generator<Candidate> {
  const next = createCandidateIterator(order, load)
  for (let member = next(); member !== null; member = next()) {
    const model = member.entry
    const skip = model
      ? findModelSkipReason(model, order.category)
      : { reason: 'there is no model of this name' }
    if (skip !== null || model === null) {
      passedOver.push({ model: member.name, key_label: null, reason: '', ...skip })
      continue
    }
    if (needsVision && !supportsImages(model)) {
      passedOver.push({ model: model.name, key_label: null, reason: noVisionReason })
      continue
    }
    yield* generateModelCandidates(model, plan.poolsFor(model.vendor.id, caller), health, passedOver)
  }
}

function* generateModelCandidates(
  model: ModelEntry,
  { pools, grantedToOthers }: CallerKeyPools,
  health: HealthLookup,
  passedOver: SkippedCandidate[],
): Generator<Candidate> {
  const pass = (keyLabel: string | null, reason: string, publicReason?: string): void => {
    passedOver.push({
      model: model.name,
      key_label: keyLabel,
      reason,
      ...(publicReason !== undefined && { publicReason }),
    })
  }
  let isKeyless = grantedToOthers === 0
  for (const pool of pools) {
    const { length } = pool.keys
    if (length > 0) isKeyless = false
    const first = pool.next
    let hasAdvanced = false
    for (let step = 0; step < length; step++) {
      const index = (first + step) % length
      const key = pool.keys[index] as KeyEntry
      // checked again for each key: it may have failed with the previous one
      const endpoint = health.stateOf('endpoint', model.endpoint.id)
      if (endpoint && !endpoint.due) return pass(null, `its endpoint ${describeHealthStatus(endpoint)}`)
      const status = health.stateOf('key', key.id)
      const skip = findKeySkipReason(key, status)
      if (skip !== null) {
        pass(key.label, skip.reason, skip.publicReason)
        continue
      }
      // the next call begins after the first key of this one, so that a skipped key burdens no single neighbor
      if (!hasAdvanced) pool.next = (index + 1) % length
      hasAdvanced = true
      yield { model, key, probes: { key: status !== null, endpoint: endpoint !== null } }
    }
  }
  if (isKeyless) {
    const endpoint = health.stateOf('endpoint', model.endpoint.id)
    if (endpoint && !endpoint.due) return pass(null, `its endpoint ${describeHealthStatus(endpoint)}`)
    yield { model, key: null, probes: { key: false, endpoint: endpoint !== null } }
  } else if (grantedToOthers > 0) {
    pass(
      null,
      `no grant: ${grantedToOthers === 1 ? 'a key of its vendor is' : `${grantedToOthers} keys of its vendor are`} for others only`,
      'no grant',
    )
  }
}

/** As in `SkippedCandidate`. */
type SkipReason = { reason: string; publicReason?: string }

const findModelSkipReason = (model: ModelEntry, category: string | null): SkipReason | null => {
  if (category !== null && !canServeCategory(model.category, category))
    return { reason: `wrong category: it is for ${model.category}, wanted is ${category}` }
  if (!model.active) return { reason: 'disabled by an admin' }
  if (!model.vendor.active)
    return {
      reason: `its vendor "${model.vendor.name}" is disabled by an admin`,
      publicReason: 'disabled by an admin',
    }
  if (!model.endpoint.active)
    return {
      reason: `its endpoint "${model.endpoint.name}" is disabled by an admin`,
      publicReason: 'disabled by an admin',
    }
  const publicReason = 'it is not set up'
  if (model.endpoint.error)
    return {
      reason: `its endpoint "${model.endpoint.name}" cannot be used: ${model.endpoint.error}`,
      publicReason,
    }
  if (model.endpoint.protocol === 'http' && !model.format)
    return { reason: 'it has no response format, which its endpoint needs', publicReason }
  if (model.format?.status === 'inactive') {
    const error = model.format.faults[0]?.detail ?? 'one of its samples fails'
    return { reason: `its response format "${model.format.name}" is inactive: ${error}`, publicReason }
  }
  return null
}

const findKeySkipReason = (key: KeyEntry, status: HealthStatus | null): SkipReason | null => {
  if (!key.active) return { reason: 'disabled by an admin' }
  if (key.secret === null)
    return {
      reason: `its secret cannot be read: ${key.error ?? 'no reason is known'}`,
      publicReason: 'its key cannot be read',
    }
  if (!status || status.due) return null
  // the time of the next try would identify the key
  return {
    reason: describeHealthStatus(status),
    publicReason: describeHealthStatus({ ...status, until: null }),
  }
}

const describeHealthStatus = ({ state, until }: HealthStatus): string => {
  const end = until === null ? '' : ` until ${until}`
  switch (state) {
    case 'cooling':
      return `is cooling${end}`
    case 'probing':
      return 'is being tried by another call'
    case 'disabled':
      return `is disabled by the vendor, tried again ${until === null ? 'later' : `at ${until}`}`
    default:
      throw state satisfies never
  }
}
