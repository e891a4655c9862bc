import { describe, expect, test } from 'vitest'
import type { HealthLookup, HealthStatus, ModelSelector } from '../../../src/models/ports/call-ports.ts'
import { createModelChooser } from '../../../src/models/routing/choose-model-and-key.ts'
import {
  caller,
  endpoint,
  healthy,
  key,
  model,
  route,
  taken,
  vendor,
  view,
} from '../../support/registry-view.ts'

const sick = (standings: Record<string, HealthStatus>): HealthLookup => ({
  stateOf: (subject, id) => standings[`${subject} ${id}`] ?? null,
})
const cooling: HealthStatus = { state: 'cooling', until: '2030-01-01T00:00:00.000Z', due: false }

const a = model('a', { vendor: vendor('v1') })
const b = model('b', { vendor: vendor('v2') })
const planner: ModelSelector = { role: 'planner' }
const namesOf = (choice: Parameters<typeof taken>[0]) => taken(choice).map(({ model: { name } }) => name)

describe('the dialects of models', () => {
  const written = model('x', { vendor: vendor('v3'), dialect: 'xml' })
  const on = { models: [a, written, b], routesByRole: { planner: route(['x', 'a', 'b']) } }

  test('are those of the route in its order, and one that is named has candidates of it only', () => {
    const chooser = createModelChooser(healthy, () => 0)
    expect(chooser.listDialects(view(on), planner, caller())).toEqual(['xml', 'tools'])
    expect(namesOf(chooser.choose(view(on), { ...planner, dialect: 'xml' }, caller()))).toEqual(['x'])
    expect(namesOf(chooser.choose(view(on), { ...planner, dialect: 'tools' }, caller()))).toEqual(['a', 'b'])
    expect(namesOf(chooser.choose(view(on), planner, caller()))).toEqual(['x', 'a', 'b'])
    expect(chooser.listDialects(view(on), { ...planner, model: 'a' }, caller())).toEqual(['tools'])
  })

  test('come last where their endpoints cool, and not at all where their models are disabled', () => {
    const cool = createModelChooser(sick({ [`endpoint ${written.endpoint.id}`]: cooling }), () => 0)
    expect(cool.listDialects(view(on), planner, caller())).toEqual(['tools', 'xml'])
    const off = { ...on, models: [a, { ...written, active: false }, b] }
    expect(createModelChooser(healthy).listDialects(view(off), planner, caller())).toEqual(['tools'])
    const none = { ...on, models: [{ ...written, active: false }] }
    expect(createModelChooser(healthy).listDialects(view(none), planner, caller())).toEqual(['xml'])
  })
})

describe('which models', () => {
  const choose = (wanted: ModelSelector, on: Parameters<typeof view>[0]) =>
    createModelChooser(healthy, () => 0).choose(view(on), wanted, caller())

  test('the alias alone, though there is a route', () => {
    const on = { models: [a, b], routesByRole: { planner: route(['a']) } }
    expect(namesOf(choose({ role: 'planner', model: 'b' }, on))).toEqual(['b'])
  })

  test('an alias that there is not is not found, and those that the caller could name are listed', () => {
    const off = model('d', { active: false })
    expect(() => choose({ role: 'planner', model: 'c' }, { models: [a, off, b] })).toThrow(
      expect.objectContaining({ code: 'not_found', remedy: 'name one of these: a, b' }),
    )
  })

  test.each([
    ['planner', 'text'],
    ['understand', 'text'],
    ['reflection', 'text'],
    ['output', 'text'],
    ['compaction', 'text'],
    ['of-an-admin', 'text'],
    ['constructor', 'text'],
    ['vision', 'multimodal'],
    ['embedding', 'embedding'],
  ])('without a route of its own, %s is served by the route of %s', (role, category) => {
    const one = model('one', { category })
    const on = { models: [a, b, one], routesByCategory: { [category]: route(['one']) } }
    expect(namesOf(choose({ role }, on))).toEqual(['one'])
    expect(
      namesOf(choose({ role }, { ...on, routesByRole: { [role]: route(['one', 'one']) } })),
    ).toHaveLength(2)
  })

  test('an alias is held against each category for which it is asked', () => {
    const chooser = createModelChooser(healthy)
    const on = view({ models: [a] })
    const ask = (category: string) =>
      namesOf(chooser.choose(on, { role: 'x', model: 'a', category }, caller()))
    expect([ask('text'), ask('embedding'), ask('multimodal')]).toEqual([['a'], [], ['a']])
  })

  test('the category that is named goes before that of the role', () => {
    const rank = model('rank', { category: 'rerank' })
    expect(namesOf(choose({ role: 'x', category: 'rerank' }, { models: [a, rank] }))).toEqual(['rank'])
  })

  test('without any route: the settings, else the active ones by age, else the offline model', () => {
    const settings = model('s', { id: 'mod_settings' })
    const off = model('off', { capabilities: ['rules-only'] })
    const sleeping = model('sleeping', { active: false })
    const embed = model('e', { id: 'mod_settings_embedding', category: 'embedding' })
    expect(namesOf(choose(planner, { models: [b, a, settings, embed] }))).toEqual(['s'])
    expect(namesOf(choose({ role: 'vision' }, { models: [b, a, settings, embed] }))).toEqual(['s'])
    expect(namesOf(choose({ role: 'embedding' }, { models: [b, a, settings, embed] }))).toEqual(['e'])
    expect(namesOf(choose(planner, { models: [off, b, sleeping, a] }))).toEqual(['b', 'a'])
    expect(namesOf(choose(planner, { models: [sleeping, off] }))).toEqual(['off'])
    expect(namesOf(choose({ role: 'embedding' }, { models: [off] }))).toEqual([])
    for (const unfit of [
      model('unfit', { category: 'reasoning' }),
      model('unfit', { vendor: vendor('v1', { active: false }) }),
      model('unfit', { endpoint: endpoint('e', { active: false }) }),
    ])
      expect(namesOf(choose(planner, { models: [unfit, off] }))).toEqual(['off'])
  })
})

describe('strategies', () => {
  const models = ['a', 'b', 'c'].map((name) => model(name))
  const prices = (input: number, output: number, currency = 'USD') => ({
    input,
    output,
    cached_input: input,
    currency,
  })
  const order = (strategy: Parameters<typeof route>[1], on = models, random = () => 0) =>
    namesOf(
      createModelChooser(healthy, random).choose(
        view({
          models: on,
          routesByRole: {
            planner: route(
              on.map(({ name }) => name),
              strategy,
            ),
          },
        }),
        planner,
        caller(),
      ),
    )

  test('priority keeps the order of the route', () => expect(order('priority')).toEqual(['a', 'b', 'c']))

  test('cheapest goes by input plus output; other currencies and unpriced ones come last', () => {
    const on = [
      model('unpriced'),
      model('dear', { prices: prices(5, 5) }),
      model('yuan', { prices: prices(1, 0, 'CNY') }),
      model('cheap', { prices: prices(9, 0) }),
      model('free', { prices: prices(0, 0) }),
      model('unpriced too'),
    ]
    expect(order('cheapest', on)).toEqual(['free', 'cheap', 'dear', 'yuan', 'unpriced', 'unpriced too'])
  })

  test('weighted gives every model once, whatever the random numbers', () => {
    for (const point of [0, 0.34, 0.67, 0.999_999_999])
      expect(order('weighted', models, () => point).toSorted()).toEqual(['a', 'b', 'c'])
    expect(order('weighted', models, () => 0.5)[0]).toBe('b')
  })

  test('least-busy looks at the calls under way, again for each next one', () => {
    const chooser = createModelChooser(healthy)
    const on = view({ models, routesByRole: { planner: route(['a', 'b', 'c'], 'least-busy') } })
    const first = () => namesOf(chooser.choose(on, planner, caller()))
    const one = chooser.busy('mod_a')
    const two = chooser.busy('mod_a')
    const three = chooser.busy('mod_b')
    expect(first()).toEqual(['c', 'b', 'a'])
    one[Symbol.dispose]()
    one[Symbol.dispose]()
    expect(first()).toEqual(['c', 'a', 'b'])
    two[Symbol.dispose]()
    expect(first()).toEqual(['a', 'c', 'b'])
    three[Symbol.dispose]()
    expect(first()).toEqual(['a', 'b', 'c'])
  })
})

describe('which key', () => {
  const shared = ['s1', 's2', 's3'].map((id) => key(id, 'v1'))
  const labels = (choice: Parameters<typeof taken>[0]) =>
    taken(choice).map(({ key: one }) => one?.label ?? null)

  test("the caller's own first, then the shared pool", () => {
    const keys = [
      ...shared.slice(0, 1),
      key('business', 'v1', { grants: [{ business_id: 'b1', user_id: null }] }),
      key('user', 'v1', { grants: [{ business_id: null, user_id: 'u1' }] }),
      key('pair', 'v1', { grants: [{ business_id: 'b1', user_id: 'u1' }] }),
      key('other', 'v1', { grants: [{ business_id: 'b2', user_id: null }] }),
    ]
    const on = view({ models: [a], keys })
    const chooser = createModelChooser(healthy)
    expect(labels(chooser.choose(on, planner, caller('b1', 'u1')))).toEqual([
      'business',
      'user',
      'pair',
      's1',
    ])
    expect(labels(chooser.choose(on, planner, caller('b1', 'u2')))).toEqual(['business', 's1'])
    expect(labels(chooser.choose(on, planner, caller('b1', null)))).toEqual(['business', 's1'])
    expect(labels(chooser.choose(on, planner, caller('b3', 'u1')))).toEqual(['user', 's1'])
    expect(labels(chooser.choose(on, planner, caller('b3', null)))).toEqual(['s1'])
  })

  test('keys of a pool take turns, and the share of a skipped one is spread over the others', () => {
    const on = view({ models: [a], keys: shared })
    const firsts = (chooser: ReturnType<typeof createModelChooser>, n: number) =>
      Array.from({ length: n }, () => labels(chooser.choose(on, planner, caller()))[0])
    expect(firsts(createModelChooser(healthy), 6)).toEqual(['s1', 's2', 's3', 's1', 's2', 's3'])
    const chooser = createModelChooser(sick({ 'key s2': cooling }))
    expect(firsts(chooser, 6)).toEqual(['s1', 's3', 's1', 's3', 's1', 's3'])
  })

  test('none where the vendor has none at all; never none where it has some that are not for the caller', () => {
    const chooser = createModelChooser(healthy)
    expect(labels(chooser.choose(view({ models: [a], keys: [key('k', 'v2')] }), planner, caller()))).toEqual([
      null,
    ])
    const granted = key('k', 'v1', { grants: [{ business_id: 'b2', user_id: null }] })
    const disabled = key('d', 'v1', { active: false })
    for (const keys of [[granted], [disabled], [granted, disabled]])
      expect(labels(chooser.choose(view({ models: [a], keys }), planner, caller()))).toEqual([])
  })

  test('what is due is tried in its turn, and said to be so', () => {
    const health = sick({
      'key s1': { ...cooling, due: true },
      'endpoint end_a': { state: 'disabled', until: null, due: true },
    })
    const [first, second] = taken(
      createModelChooser(health).choose(view({ models: [a], keys: shared }), planner, caller()),
    )
    expect(first).toMatchObject({
      key: { id: 's1' },
      probes: [
        { subject: 'endpoint', id: 'end_a' },
        { subject: 'key', id: 's1' },
      ],
    })
    expect(second).toMatchObject({ key: { id: 's2' }, probes: [{ subject: 'endpoint', id: 'end_a' }] })
  })

  test('an endpoint that fails during the call is skipped at once', () => {
    const standings: Record<string, HealthStatus> = {}
    const on = view({ models: [a, b], keys: shared })
    const choice = createModelChooser(sick(standings)).choose(on, planner, caller())
    const seen: (string | null)[] = []
    for (const { model: one, key: used } of choice.candidates) {
      seen.push(`${one.name} ${used?.id ?? null}`)
      standings[`endpoint end_${one.name}`] = cooling
    }
    expect(seen).toEqual(['a s1', 'b null'])
    expect(choice.passedOver).toEqual([
      { model: 'a', key_label: null, reason: 'its endpoint is cooling until 2030-01-01T00:00:00.000Z' },
    ])
  })
})

describe('a skipped candidate has its reason', () => {
  const reasons = (on: Parameters<typeof view>[0], health = healthy, wanted = planner) => {
    const choice = createModelChooser(health).choose(view(on), wanted, caller())
    expect(taken(choice)).toEqual([])
    return choice.passedOver.map(({ model: name, key_label, reason }) => `${name}|${key_label}|${reason}`)
  }
  const routed = { routesByRole: { planner: route(['m']) } }
  const of = (more: Parameters<typeof model>[1] = {}) => ({ ...routed, models: [model('m', more)] })
  const withKey = (more: Parameters<typeof key>[2]) => ({
    ...of({ vendor: vendor('v1') }),
    keys: [key('k', 'v1', more)],
  })

  test.each([
    ['m|null|there is no model of this name', { ...routed, models: [] }],
    ['m|null|disabled by an admin', of({ active: false })],
    ['m|null|its vendor "v1" is disabled by an admin', of({ vendor: vendor('v1', { active: false }) })],
    ['m|null|its endpoint "e" is disabled by an admin', of({ endpoint: endpoint('e', { active: false }) })],
    ['m|null|its endpoint "e" cannot be used: broken', of({ endpoint: endpoint('e', { error: 'broken' }) })],
    ['m|null|wrong category: it is for embedding, wanted is text', of({ category: 'embedding' })],
    [
      'm|null|it has no response format, which its endpoint needs',
      of({ endpoint: endpoint('e', { protocol: 'http' }) }),
    ],
    ['m|k|disabled by an admin', withKey({ active: false })],
    ['m|k|its secret cannot be read: sealed elsewhere', withKey({ secret: null, error: 'sealed elsewhere' })],
    [
      'm|null|no grant: a key of its vendor is for others only',
      withKey({ grants: [{ business_id: 'another', user_id: null }] }),
    ],
  ])('%s', (reason, on) => expect(reasons(on)).toEqual([reason]))

  test.each<[string, string, HealthStatus]>([
    ['m|k|is cooling until 2030-01-01T00:00:00.000Z', 'key k', cooling],
    ['m|k|is being tried by another call', 'key k', { state: 'probing', until: null, due: false }],
    [
      'm|k|is disabled by the vendor, tried again at 2030-01-01T00:00:00.000Z',
      'key k',
      { ...cooling, state: 'disabled' },
    ],
    ['m|null|its endpoint is cooling until 2030-01-01T00:00:00.000Z', 'endpoint end_m', cooling],
  ])('%s', (reason, subject, standing) =>
    expect(reasons(withKey({}), sick({ [subject]: standing }))).toEqual([reason]),
  )

  test('keys of others are counted, without those of the caller and the shared ones', () => {
    const granted = (id: string, business_id: string) =>
      key(id, 'v1', { grants: [{ business_id, user_id: null }] })
    const keys = [granted('own', 'b1'), granted('x', 'b2'), granted('y', 'b3'), key('shared', 'v1')]
    const choice = createModelChooser(healthy).choose(
      view({ ...of({ vendor: vendor('v1') }), keys }),
      planner,
      caller(),
    )
    expect(taken(choice)).toHaveLength(2)
    expect(choice.passedOver.map(({ reason }) => reason)).toEqual([
      'no grant: 2 keys of its vendor are for others only',
    ])
  })

  test('candidates that were not reached have no note', () => {
    const on = view({
      models: [a, model('off', { active: false })],
      routesByRole: { planner: route(['a', 'off']) },
    })
    const choice = createModelChooser(healthy).choose(on, planner, caller())
    const [first] = choice.candidates
    expect(first?.model.name).toBe('a')
    expect(choice.passedOver).toEqual([])
  })
})

describe('whether a model is open to a caller', () => {
  const isOpen = (on: Parameters<typeof view>[0], health = healthy, who = caller()) =>
    createModelChooser(health).isOpenTo(view(on), on.models?.[0] ?? a, who)
  const granted = key('k', 'v1', { grants: [{ business_id: 'b2', user_id: 'u2' }] })

  test.each<[string, boolean, Parameters<typeof view>[0]]>([
    ['a vendor without keys', true, { models: [a] }],
    ['a shared key', true, { models: [a], keys: [key('k', 'v1')] }],
    ['a disabled model', false, { models: [model('m', { active: false })] }],
    ['a disabled vendor', false, { models: [model('m', { vendor: vendor('v1', { active: false }) })] }],
    ['a disabled endpoint', false, { models: [model('m', { endpoint: endpoint('e', { active: false }) })] }],
    [
      'headers that cannot be opened',
      false,
      { models: [model('m', { endpoint: endpoint('e', { error: 'x' }) })] },
    ],
    ['disabled keys', false, { models: [a], keys: [key('k', 'v1', { active: false })] }],
    ['keys that cannot be read', false, { models: [a], keys: [key('k', 'v1', { secret: null })] }],
    ['one good key of two', true, { models: [a], keys: [key('x', 'v1', { active: false }), key('y', 'v1')] }],
    ['keys of others', false, { models: [a], keys: [granted] }],
  ])('%s: %s', (_, open, on) => expect(isOpen(on)).toBe(open))

  test('the grant counts, and health does not', () => {
    const on = { models: [a], keys: [granted] }
    expect(isOpen(on, healthy, caller('b2', 'u2'))).toBe(true)
    expect(isOpen(on, healthy, caller('b2', 'u1'))).toBe(false)
    expect(isOpen({ models: [a], keys: [key('k', 'v1')] }, sick({ 'key k': cooling }))).toBe(true)
  })

  test('the check does not change the turn of the keys', () => {
    const chooser = createModelChooser(healthy)
    const on = view({ models: [a], keys: [key('x', 'v1'), key('y', 'v1')] })
    for (const _ of [1, 2, 3]) chooser.isOpenTo(on, a, caller())
    expect(taken(chooser.choose(on, planner, caller()))[0]?.key?.id).toBe('x')
  })
})
