import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HealthLookup, HealthStatus } from '../../../src/models/ports/call-ports.ts'
import type { KeyEntry, ModelCaller } from '../../../src/models/ports/model-ports.ts'
import { createModelChooser } from '../../../src/models/routing/choose-model-and-key.ts'
import { caller, healthy, key, model, route, taken, vendor, view } from '../../support/registry-view.ts'

const business = fc.constantFrom('b1', 'b2', 'b3')
const user = fc.constantFrom('u1', 'u2', 'u3')
const grant = fc.oneof(
  fc.record({ business_id: business, user_id: fc.constant(null) }),
  fc.record({ business_id: fc.constant(null), user_id: user }),
  fc.record({ business_id: business, user_id: user }),
)
const keysOf = fc
  .array(
    fc.record({
      vendor: fc.constantFrom('v1', 'v2', 'v3'),
      grants: fc.array(grant, { maxLength: 3 }),
      active: fc.boolean(),
      opened: fc.boolean(),
    }),
    { maxLength: 12 },
  )
  .map((list) =>
    list.map(({ vendor: of, grants, active, opened }, index) => {
      const lost: Partial<KeyEntry> = opened ? {} : { secret: null, error: 'lost' }
      return key(`k${index}`, of, { grants, active, ...lost })
    }),
  )
const standing = fc.option(
  fc.record({
    state: fc.constantFrom<HealthStatus['state']>('cooling', 'probing', 'disabled'),
    until: fc.constant(null),
    due: fc.boolean(),
  }),
)

const mayUse = ({ grants }: KeyEntry, { business_id, user_id }: ModelCaller): boolean =>
  grants.length === 0 ||
  grants.some(
    (one) =>
      (one.business_id === null || one.business_id === business_id) &&
      (one.user_id === null || one.user_id === user_id),
  )

/** Three models of three vendors, tried in this order. */
const models = ['v1', 'v2', 'v3'].map((id) => model(`m-${id}`, { vendor: vendor(id) }))
const routesByRole = { planner: route(models.map(({ name }) => name)) }
const planner = { role: 'planner' }

describe('whatever the registry holds', () => {
  const anything = fc.record({
    keys: keysOf,
    business_id: business,
    user_id: fc.option(user),
    standings: fc.array(standing, { minLength: 15, maxLength: 15 }),
  })
  const healthOf =
    (standings: readonly (HealthStatus | null)[]): HealthLookup['stateOf'] =>
    (subject, id) =>
      (subject === 'key'
        ? standings[Number(id.slice(1))]
        : subject === 'endpoint'
          ? standings[12 + Number(id.at(-1)) - 1]
          : null) ?? null

  test('each key that may be used comes exactly once, in order, and no other ever; each other is accounted for', () => {
    fc.assert(
      fc.property(anything, ({ keys, business_id, user_id, standings }) => {
        const who = caller(business_id, user_id)
        const stateOf = healthOf(standings)
        const isOpen = (now: HealthStatus | null) => now === null || now.due
        const choice = createModelChooser({ stateOf }).choose(
          view({ models, keys, routesByRole }),
          planner,
          who,
        )
        const all = taken(choice)
        const expected = models.flatMap(({ name, vendor: { id }, endpoint }) => {
          if (!isOpen(stateOf('endpoint', endpoint.id))) return []
          const own = keys.filter(({ vendor_id }) => vendor_id === id)
          if (own.length === 0) return [`${name} -`]
          const usable = own.filter(
            (one) => one.active && one.secret && mayUse(one, who) && isOpen(stateOf('key', one.id)),
          )
          const granted = usable.filter(({ grants }) => grants.length > 0)
          const shared = usable.filter(({ grants }) => grants.length === 0)
          return [...granted, ...shared].map((one) => `${name} ${one.id}`)
        })
        expect(all.map((one) => `${one.model.name} ${one.key?.id ?? '-'}`)).toEqual(expected)
        for (const { model: one, key: used, probes } of all) {
          if (used) expect(mayUse(used, who)).toBe(true)
          expect(probes.some(({ subject }) => subject === 'key')).toBe(
            used !== null && stateOf('key', used.id) !== null,
          )
          expect(probes.some(({ subject }) => subject === 'endpoint')).toBe(
            stateOf('endpoint', one.endpoint.id) !== null,
          )
        }
        // a model without a candidate says why
        for (const { name } of models)
          expect(
            all.some(({ model: one }) => one.name === name) ||
              choice.passedOver.some((one) => one.model === name),
          ).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  test('over many calls of many callers the keys of a pool are used alike', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 50 }), (count, rounds) => {
        const keys = Array.from({ length: count }, (_, index) => key(`k${index}`, 'v1'))
        const on = view({ models: models.slice(0, 1), keys })
        const chooser = createModelChooser(healthy)
        const used = new Map<string, number>()
        for (let n = 0; n < count * rounds; n++) {
          const [first] = chooser.choose(on, planner, caller(`b${n % 3}`, `u${n % 5}`)).candidates
          used.set(first?.key?.id ?? '', (used.get(first?.key?.id ?? '') ?? 0) + 1)
        }
        expect([...used.values()]).toEqual(keys.map(() => rounds))
      }),
    )
  })
})

describe('weights', () => {
  test('hold for the first choice, and every model comes once', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(weights, fc.integer(), (list, seed) => {
        const all = list.map((_, index) => model(`m${index}`))
        const members = list.map((weight, index) => ({ model: `m${index}`, weight }))
        const on = view({ models: all, routesByRole: { planner: route(members, 'weighted') } })
        const random = mulberry(seed)
        const chooser = createModelChooser(healthy, random)
        const firsts = list.map(() => 0)
        const calls = 4000
        for (let n = 0; n < calls; n++) {
          const [first] = chooser.choose(on, planner, caller()).candidates
          const index = Number(first?.model.name.slice(1))
          firsts[index] = (firsts[index] ?? 0) + 1
        }
        const total = list.reduce((sum, weight) => sum + weight, 0)
        list.forEach((weight, index) => {
          const share = weight / total
          // six standard deviations
          const slack = 6 * Math.sqrt((share * (1 - share)) / calls)
          expect(Math.abs((firsts[index] ?? 0) / calls - share)).toBeLessThanOrEqual(slack + 1e-9)
        })
        const order = taken(chooser.choose(on, planner, caller())).map(({ model: one }) => one.name)
        expect(order.toSorted()).toEqual(all.map(({ name }) => name).toSorted())
      }),
      { numRuns: 40 },
    )
  })

  test('are those of the models that are left when the first one cannot serve', () => {
    const all = [model('dead', { active: false }), model('a'), model('b')]
    const members = [
      { model: 'dead', weight: 90 },
      { model: 'a', weight: 9 },
      { model: 'b', weight: 3 },
    ]
    const on = view({ models: all, routesByRole: { planner: route(members, 'weighted') } })
    const chooser = createModelChooser(healthy, mulberry(7))
    let chosen = 0
    for (let n = 0; n < 4000; n++) {
      const [first] = chooser.choose(on, planner, caller()).candidates
      if (first?.model.name === 'a') chosen++
    }
    expect(chosen / 4000).toBeGreaterThan(0.71)
    expect(chosen / 4000).toBeLessThan(0.79)
  })
})

/** Numbers from 0 up to 1 that look random, the same for the same seed. Mulberry32, public domain. */
const mulberry = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
