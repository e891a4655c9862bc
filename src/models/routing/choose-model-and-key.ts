import { MasonError } from '../../state/errors.ts'
import type { DialectName } from '../../state/ports/models.ts'
import {
  type Candidate,
  type FailureSource,
  type HealthLookup,
  type HealthStatus,
  type HealthSubject,
  listHealthSubjects,
  type ModelSelector,
  type SkippedCandidate,
} from '../ports/call-ports.ts'
import type { KeyEntry, ModelCaller, ModelEntry, RegistryView } from '../ports/model-ports.ts'
import {
  type CandidateOrder,
  canServeCategory,
  createCandidateOrders,
  followsRules,
  iterateMembers,
  type RoutingLoad,
} from './candidate-order.ts'
import { type CallerKeyPools, createKeyPools, type VendorKeyPools } from './key-pools.ts'
import { noVisionReason, supportsImages } from './vision.ts'

/** The candidates of one call, best first. Each is checked only when it is taken, so its health is current. */
export type ModelChoice = {
  candidates: Iterable<Candidate>
  /** The candidates skipped so far; it grows while `candidates` are taken. */
  passedOver: readonly SkippedCandidate[]
  /** How many models could be asked, were all healthy. */
  models: number
}

/** Chooses the model and key of a call. */
export type ModelChooser = {
  /** Whether a caller can use a model, whatever its health: it is active and set up, and has a key for the caller. */
  isOpenTo(view: RegistryView, model: ModelEntry, caller: ModelCaller): boolean
  /** Throws `not_found` for an unknown alias, `model_bad_request` for images to a model that only follows rules. */
  choose(
    view: RegistryView,
    selector: ModelSelector,
    caller: ModelCaller,
    source?: FailureSource,
  ): ModelChoice
  /** The dialects of the models that a caller can use, in the order in which they would be tried. */
  listDialects(view: RegistryView, selector: ModelSelector, caller: ModelCaller): DialectName[]
  /** The active models that may serve, whatever their health and keys. */
  listActive(view: RegistryView, selector: ModelSelector): ModelEntry[]
  /** Counts a call to this model as in flight until it is disposed; for `least-busy`. */
  busy(modelId: string): Disposable
}

/**
 * What is computed once per view. Continues the turns of the previous plan, so that a change of the registry does not
 * favor the first keys.
 */
const createPlan = (view: RegistryView, before: ReadonlyMap<string, string | null>) => {
  const pools = new Map<string, VendorKeyPools>()
  return {
    view,
    orderFor: createCandidateOrders(view),
    poolsFor(vendorId: string, caller: ModelCaller): CallerKeyPools {
      const ofVendor =
        pools.get(vendorId) ??
        createKeyPools(view.keysByVendor.get(vendorId) ?? [], before.get(vendorId) ?? null)
      pools.set(vendorId, ofVendor)
      return ofVendor.forCaller(caller)
    },
    /** By vendor, the shared key that is next. */
    turns: () => new Map([...before, ...[...pools].map(([id, of]) => [id, of.nextSharedKey()] as const)]),
  }
}
type Plan = ReturnType<typeof createPlan>

/** Whether a caller can use a model of a category, whatever its health. */
export const canCallCategory = (
  { listActive, isOpenTo }: Pick<ModelChooser, 'listActive' | 'isOpenTo'>,
  view: RegistryView,
  category: string,
  caller: ModelCaller,
): boolean =>
  listActive(view, { role: category, category }).some(
    (model) => model.category === category && isOpenTo(view, model, caller),
  )

/** Chooses models and keys from the view in memory; `random` returns numbers from 0 up to 1. */
export const createModelChooser = (
  health: HealthLookup,
  random: () => number = Math.random,
): ModelChooser => {
  let plan: Plan | null = null
  const inFlight = new Map<string, number>()
  const load: RoutingLoad = { random, inFlight: (modelId) => inFlight.get(modelId) ?? 0 }
  const planFor = (view: RegistryView): Plan => {
    if (plan?.view !== view) plan = createPlan(view, plan?.turns() ?? new Map())
    return plan
  }
  const isOpenTo: ModelChooser['isOpenTo'] = (view, model, caller) => {
    if (findModelSkipReason(model, null, false) !== null) return false
    const { pools, grantedToOthers } = planFor(view).poolsFor(model.vendor.id, caller)
    const keys = pools.flatMap((pool) => pool.keys)
    return keys.length === 0 ? grantedToOthers === 0 : keys.some((key) => findKeySkipReason(key) === null)
  }
  const nameModels = (view: RegistryView, caller: ModelCaller, isMeant = (_: ModelEntry) => true): string => {
    const open = [...view.models.values()].filter((model) => isMeant(model) && isOpenTo(view, model, caller))
    const names = open.slice(0, 20).map(({ name }) => name)
    return names.length > 0 ? `name one of these: ${names.join(', ')}` : 'have an admin add one'
  }
  return {
    isOpenTo,
    choose(view, selector, caller, source) {
      const current = planFor(view)
      const all = current.orderFor(selector)
      if (!all)
        throw new MasonError('not_found', `there is no model "${selector.model}"`, {
          remedy: nameModels(view, caller),
        })
      const { dialect } = selector
      const members = all.members.filter(({ entry }) => !dialect || !entry || entry.dialect === dialect)
      const order = { ...all, members }
      // an alias is not checked for vision; only models that follow rules are known not to have it
      const isNamed = selector.model !== undefined
      if (selector.images && isNamed && order.members.some(({ entry }) => entry && followsRules(entry)))
        throw new MasonError('model_bad_request', `"${selector.model}" cannot see images`, {
          remedy: nameModels(view, caller, supportsImages),
        })
      const passedOver: SkippedCandidate[] = []
      const needsVision = selector.images === true && !isNamed
      const models = order.members.filter(
        ({ entry }) => entry && findModelSkipReason(entry, order.category, needsVision) === null,
      ).length
      const seen: HealthLookup = {
        stateOf: (subject, id) =>
          source?.excuses?.(subject, id) ? null : health.stateOf(subject, id, source),
      }
      return {
        candidates: generateCandidates(order, current, caller, seen, load, needsVision, passedOver, models),
        passedOver,
        models,
      }
    },
    listDialects(view, selector, caller) {
      const order = planFor(view).orderFor(selector)
      const entries = order ? [...iterateMembers(order, load)].flatMap(({ entry }) => entry ?? []) : []
      const source = { business: caller.business_id, run: caller.run_id, prompt: () => '' }
      const isClosed = (model: ModelEntry): boolean =>
        listHealthSubjects(model, null).some(
          ({ subject, id }) => health.stateOf(subject, id, source)?.due === false,
        )
      const usable = entries.filter((model) => isOpenTo(view, model, caller))
      const open = usable.filter((model) => !isClosed(model))
      // a call of models that cannot be used says why
      const known = usable.length > 0 ? [...open, ...usable.filter(isClosed)] : entries
      return [...new Set(known.map(({ dialect }) => dialect))]
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
  models: number,
): Generator<Candidate> {
  for (const { name, entry: model } of iterateMembers(order, load)) {
    const skip = model
      ? findModelSkipReason(model, order.category, needsVision)
      : { reason: 'there is no model of this name' }
    if (skip) passedOver.push({ model: name, key_label: null, ...skip })
    else if (model) {
      const pools = plan.poolsFor(model.vendor.id, caller)
      yield* generateModelCandidates(model, pools, health, passedOver, models === 1)
    }
  }
}

function* generateModelCandidates(
  model: ModelEntry,
  { pools, grantedToOthers }: CallerKeyPools,
  health: HealthLookup,
  passedOver: SkippedCandidate[],
  isOnly: boolean,
): Generator<Candidate> {
  const only = { model: isOnly, key: pools.flatMap(({ keys }) => keys).length <= 1 }
  const pass = (key_label: string | null, skip: SkipReason): void => {
    passedOver.push({ model: model.name, key_label, ...skip })
  }
  const isKeyless = grantedToOthers === 0 && pools.every(({ keys }) => keys.length === 0)
  for (const pool of isKeyless ? [{ keys: [null], next: 0 }] : pools) {
    const { length } = pool.keys
    const first = pool.next
    let hasAdvanced = false
    for (let step = 0; step < length; step++) {
      const index = (first + step) % length
      const key = pool.keys[index] ?? null
      // checked again for each key: it may have failed with the previous one
      const unhealthy = listHealthSubjects(model, key).flatMap(({ subject, id }) => {
        const status = health.stateOf(subject, id)
        return status ? [{ subject, id, status }] : []
      })
      const closed = unhealthy.find(({ status }) => !status.due)
      if (closed && isOfModel(closed.subject))
        return pass(null, { reason: `${subjectWords[closed.subject]}${describeHealthStatus(closed.status)}` })
      const skip = key && (findKeySkipReason(key) ?? (closed && toClosedReason(closed)))
      if (skip) {
        pass(key.label, skip)
        continue
      }
      // the next call begins after the first key of this one, so that a skipped key burdens no single neighbor
      if (!hasAdvanced) pool.next = (index + 1) % length
      hasAdvanced = true
      yield { model, key, probes: unhealthy.map(({ subject, id }) => ({ subject, id })), only }
    }
  }
  if (grantedToOthers === 0) return
  const others =
    grantedToOthers === 1 ? 'a key of its vendor is' : `${grantedToOthers} keys of its vendor are`
  pass(null, { reason: `no grant: ${others} for others only`, publicReason: 'no grant' })
}

/** As in `SkippedCandidate`. */
type SkipReason = Pick<SkippedCandidate, 'reason' | 'publicReason'>

const toDisabled = (what: string): SkipReason => {
  const publicReason = 'disabled by an admin'
  return { reason: `${what} is ${publicReason}`, publicReason }
}

const findModelSkipReason = (
  { category: own, active, capabilities, vendor, endpoint, format }: ModelEntry,
  category: string | null,
  needsVision: boolean,
): SkipReason | null => {
  if (category !== null && !canServeCategory(own, category))
    return { reason: `wrong category: it is for ${own}, wanted is ${category}` }
  if (!active) return { reason: 'disabled by an admin' }
  if (!vendor.active) return toDisabled(`its vendor "${vendor.name}"`)
  if (!endpoint.active) return toDisabled(`its endpoint "${endpoint.name}"`)
  const publicReason = 'it is not set up'
  if (endpoint.error)
    return { reason: `its endpoint "${endpoint.name}" cannot be used: ${endpoint.error}`, publicReason }
  if (endpoint.protocol === 'http' && !format)
    return { reason: 'it has no response format, which its endpoint needs', publicReason }
  return needsVision && !supportsImages({ category: own, capabilities }) ? { reason: noVisionReason } : null
}

const findKeySkipReason = (key: KeyEntry): SkipReason | null => {
  if (!key.active) return { reason: 'disabled by an admin' }
  if (key.secret === null)
    return {
      reason: `its secret cannot be read: ${key.error ?? 'no reason is known'}`,
      publicReason: 'its key cannot be read',
    }
  return null
}

const isOfModel = (subject: HealthSubject): boolean => subject === 'endpoint' || subject === 'model'
const subjectWords: Record<HealthSubject, string> = {
  endpoint: 'its endpoint ',
  model: '',
  key: '',
  key_model: 'for this model it ',
}

const toClosedReason = ({
  subject,
  status,
}: {
  subject: HealthSubject
  status: HealthStatus
}): SkipReason => ({
  reason: `${subjectWords[subject]}${describeHealthStatus(status)}`,
  // the time of the next try would identify the key
  publicReason: describeHealthStatus({ ...status, until: null }),
})

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
