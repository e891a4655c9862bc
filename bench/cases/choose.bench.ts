import type { HealthLookup, HealthStatus } from '../../src/models/ports/call-ports.ts'
import type { ModelCaller, RegistryView, RouteEntry } from '../../src/models/ports/model-ports.ts'
import { createModelChooser } from '../../src/models/routing/choose-model-and-key.ts'
import { key, model, route, vendor, view } from '../../test/support/registry-view.ts'
import type { Case, Variant } from '../case.ts'
import { latencies } from '../support/statistics.ts'

const calls = 100_000
const warmUp = 20_000
const vendors = 20
const modelCount = 200
const keyCount = 2000
const callers = 500

/** 200 models of 20 vendors, 2,000 keys; every second key is granted to one of 500 businesses, every tenth model unpriced. */
const registry = (strategy: RouteEntry['strategy']): RegistryView => {
  const models = Array.from({ length: modelCount }, (_, n) =>
    model(`m${n}`, {
      vendor: vendor(`v${n % vendors}`),
      prices: n % 10 === 0 ? null : { input: n, output: 2 * n, cached_input: n, currency: 'USD' },
    }),
  )
  const keys = Array.from({ length: keyCount }, (_, n) =>
    key(`k${n}`, `v${n % vendors}`, {
      grants: n % 2 === 0 ? [] : [{ business_id: `b${n % callers}`, user_id: null }],
    }),
  )
  const members = models.slice(0, 100).map(({ name }, n) => ({ model: name, weight: 1 + (n % 7) }))
  return view({ models, keys, routesByRole: { planner: route(members, strategy) } })
}

const cooling: HealthStatus = { state: 'cooling', until: '2030-01-01T00:00:00.000Z', due: false }

/** Every third key and every fifth endpoint. */
const sick: HealthLookup = {
  stateOf: (subject, id) =>
    Number(id.replace(/^\D+/, '')) % (subject === 'key' ? 3 : 5) === 0 ? cooling : null,
}
const healthy: HealthLookup = { stateOf: () => null }

/** The first candidate of each of many calls, each for the next of the callers. */
const choosing =
  (strategy: RouteEntry['strategy'], health: HealthLookup): Variant =>
  async (place) => {
    const on = registry(strategy)
    const chooser = createModelChooser(health)
    const who = Array.from(
      { length: callers },
      (_, n): ModelCaller => ({ business_id: `b${n}`, user_id: `u${n}`, run_id: null }),
    )
    const busy: Disposable[] = []
    const once = (n: number): void => {
      for (const { model: chosen } of chooser.choose(on, { role: 'planner' }, who[n % callers] as ModelCaller)
        .candidates) {
        busy.push(chooser.busy(chosen.id))
        break
      }
      if (busy.length > 64) busy.shift()?.[Symbol.dispose]()
    }
    for (let n = 0; n < place.count(warmUp); n++) once(n)
    const ms: number[] = []
    for (let n = 0; n < place.count(calls); n++) {
      const since = performance.now()
      once(n)
      ms.push(performance.now() - since)
    }
    return Object.fromEntries(
      Object.entries(latencies(ms)).map(([name, value]) => [name.replace('ms', 'µs'), value * 1000]),
    )
  }

const chooseCase: Case = {
  about:
    'choosing model and key from the view in memory, with 200 models, 2,000 keys and a route of 100 models',
  ours: {
    priority: choosing('priority', healthy),
    weighted: choosing('weighted', healthy),
    'least-busy': choosing('least-busy', healthy),
    cheapest: choosing('cheapest', healthy),
    'priority, many cooling': choosing('priority', sick),
    'weighted, many cooling': choosing('weighted', sick),
  },
}

export default chooseCase
