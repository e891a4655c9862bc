import { MasonError } from '../../../state/errors.ts'
import type { Candidate, HealthLookup, PassedOver, Standing, Wanted } from '../call-ports.ts'
import type { Caller, KeyEntry, ModelEntry, RegistryView } from '../ports.ts'
import { createLines, offlineModelId } from './lines.ts'
import { type Line, type Load, walk } from './order.ts'
import { type CallerPools, createPools, type VendorPools } from './pools.ts'
import { standsInFor } from './roles.ts'
import { sees, whyBlind } from './sight.ts'

/** Where one call may go, best first. Nothing is looked at before it is asked for, so health counts as it is then. */
export type Choice = {
  candidates: Iterable<Candidate>
  /** What was passed over so far; it grows while `candidates` are taken. */
  passedOver: readonly PassedOver[]
}

export type Chooser = {
  /** Whether a caller could use a model at all: it is active and set up, and has a key for him. Health comes and goes. */
  isOpenTo(view: RegistryView, model: ModelEntry, caller: Caller): boolean
  /** Throws `not_found` for an alias that there is not, `model_bad_request` for one that cannot be shown what is asked. */
  choose(view: RegistryView, wanted: Wanted, caller: Caller): Choice
  /** A call to this model is under way until it is disposed of: `least-busy` counts them. */
  busy(modelId: string): Disposable
}

/** What is worked out once a view. */
type Plan = {
  lineFor(wanted: Wanted): Line | null
  poolsFor(vendorId: string, caller: Caller): CallerPools
  /** By vendor, the shared key whose turn it is. */
  turns(): Map<string, string | null>
}

/** Goes on with the turns of the plan before, so that a change of the registry does not load the first keys. */
const planOf = (view: RegistryView, before: ReadonlyMap<string, string | null>): Plan => {
  const pools = new Map<string, VendorPools>()
  return {
    turns: () => new Map([...before, ...[...pools].map(([id, of]) => [id, of.turn()] as const)]),
    lineFor: createLines(view),
    poolsFor(vendorId, caller) {
      let ofVendor = pools.get(vendorId)
      if (!ofVendor) {
        ofVendor = createPools(view.keysByVendor.get(vendorId) ?? [], before.get(vendorId) ?? null)
        pools.set(vendorId, ofVendor)
      }
      return ofVendor.of(caller)
    },
  }
}

/** Chooses models and keys from the view in memory; `random` gives numbers from 0 up to 1. */
export const createChooser = (health: HealthLookup, random: () => number = Math.random): Chooser => {
  const plans = new WeakMap<RegistryView, Plan>()
  let latest: Plan | null = null
  const underWay = new Map<string, number>()
  const load: Load = { random, inFlight: (modelId) => underWay.get(modelId) ?? 0 }
  const planFor = (view: RegistryView): Plan => {
    const known = plans.get(view)
    if (known) return known
    const plan = planOf(view, latest?.turns() ?? new Map())
    plans.set(view, plan)
    latest = plan
    return plan
  }
  return {
    isOpenTo(view, model, caller) {
      if (whyNotModel(model, null) !== null) return false
      const { pools, others } = planFor(view).poolsFor(model.vendor.id, caller)
      const keys = pools.flatMap((pool) => pool.keys)
      return keys.length === 0 ? others === 0 : keys.some((key) => whyNotKey(key, null) === null)
    },
    choose(view, wanted, caller) {
      const plan = planFor(view)
      const line = plan.lineFor(wanted)
      if (!line)
        throw new MasonError('not_found', `there is no model "${wanted.model}"`, {
          remedy: 'GET /v1/models lists the models there are',
        })
      // who names a model vouches for what it takes; of our own we know
      const isNamed = wanted.model !== undefined
      if (wanted.images && isNamed && line.members.some(({ entry }) => entry?.id === offlineModelId))
        throw new MasonError('model_bad_request', `"${wanted.model}" cannot see images`, {
          remedy: 'name a model that does: GET /v1/models lists those there are',
        })
      const passedOver: PassedOver[] = []
      const mustSee = wanted.images === true && !isNamed
      return { candidates: candidatesOf(line, plan, caller, health, load, mustSee, passedOver), passedOver }
    },
    busy(modelId) {
      underWay.set(modelId, load.inFlight(modelId) + 1)
      let done = false
      return {
        [Symbol.dispose]() {
          if (done) return
          done = true
          const left = load.inFlight(modelId) - 1
          if (left > 0) underWay.set(modelId, left)
          else underWay.delete(modelId)
        },
      }
    },
  }
}

function* candidatesOf(
  line: Line,
  plan: Plan,
  caller: Caller,
  health: HealthLookup,
  load: Load,
  mustSee: boolean,
  passedOver: PassedOver[],
): Generator<Candidate> {
  const next = walk(line, load)
  for (let member = next(); member !== null; member = next()) {
    const model = member.entry
    const not = model ? whyNotModel(model, line.category) : { why: 'there is no model of this name' }
    if (not !== null || model === null) {
      passedOver.push({ model: member.name, key_label: null, why: '', ...not })
      continue
    }
    if (mustSee && !sees(model)) {
      passedOver.push({ model: model.name, key_label: null, why: whyBlind })
      continue
    }
    yield* candidatesOfModel(model, plan.poolsFor(model.vendor.id, caller), health, passedOver)
  }
}

function* candidatesOfModel(
  model: ModelEntry,
  { pools, others }: CallerPools,
  health: HealthLookup,
  passedOver: PassedOver[],
): Generator<Candidate> {
  const pass = (keyLabel: string | null, why: string, told?: string): void => {
    passedOver.push({ model: model.name, key_label: keyLabel, why, ...(told !== undefined && { told }) })
  }
  let isKeyless = others === 0
  for (const pool of pools) {
    const { length } = pool.keys
    if (length > 0) isKeyless = false
    const first = pool.next
    let isTurned = false
    for (let step = 0; step < length; step++) {
      const index = (first + step) % length
      const key = pool.keys[index] as KeyEntry
      // looked at anew for each key: it may have failed with the one before
      const endpoint = health.stateOf('endpoint', model.endpoint.id)
      if (endpoint && !endpoint.due) return pass(null, `its endpoint ${whyStanding(endpoint)}`)
      const standing = health.stateOf('key', key.id)
      const not = whyNotKey(key, standing)
      if (not !== null) {
        pass(key.label, not.why, not.told)
        continue
      }
      // the next call begins after the first key that this one got: a key that is left out burdens no single neighbour
      if (!isTurned) pool.next = (index + 1) % length
      isTurned = true
      yield { model, key, probes: { key: standing !== null, endpoint: endpoint !== null } }
    }
  }
  if (isKeyless) {
    const endpoint = health.stateOf('endpoint', model.endpoint.id)
    if (endpoint && !endpoint.due) return pass(null, `its endpoint ${whyStanding(endpoint)}`)
    yield { model, key: null, probes: { key: false, endpoint: endpoint !== null } }
  } else if (others > 0) {
    pass(
      null,
      `no grant: ${others === 1 ? 'a key of its vendor is' : `${others} keys of its vendor are`} for others only`,
      'no grant',
    )
  }
}

/** As in `PassedOver`. */
type Not = { why: string; told?: string }

const whyNotModel = (model: ModelEntry, category: string | null): Not | null => {
  if (category !== null && !standsInFor(model.category, category))
    return { why: `wrong category: it is for ${model.category}, wanted is ${category}` }
  if (!model.active) return { why: 'disabled by an admin' }
  if (!model.vendor.active)
    return { why: `its vendor "${model.vendor.name}" is disabled by an admin`, told: 'disabled by an admin' }
  if (!model.endpoint.active)
    return {
      why: `its endpoint "${model.endpoint.name}" is disabled by an admin`,
      told: 'disabled by an admin',
    }
  const told = 'it is not set up'
  if (model.endpoint.fault)
    return { why: `its endpoint "${model.endpoint.name}" cannot be used: ${model.endpoint.fault}`, told }
  if (model.endpoint.protocol === 'http' && !model.format)
    return { why: 'it has no response format, which its endpoint needs', told }
  if (model.format?.status === 'inactive') {
    const fault = model.format.faults[0]?.detail ?? 'one of its samples fails'
    return { why: `its response format "${model.format.name}" is inactive: ${fault}`, told }
  }
  return null
}

const whyNotKey = (key: KeyEntry, standing: Standing | null): Not | null => {
  if (!key.active) return { why: 'disabled by an admin' }
  if (key.secret === null)
    return {
      why: `its secret cannot be read: ${key.fault ?? 'no reason is known'}`,
      told: 'its key cannot be read',
    }
  if (!standing || standing.due) return null
  // when a key is tried again tells keys apart
  return { why: whyStanding(standing), told: whyStanding({ ...standing, until: null }) }
}

const whyStanding = ({ state, until }: Standing): string => {
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
