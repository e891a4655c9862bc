// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import {
  createOrders,
  listPoints,
  playCancel,
  playClaims,
  playFinish,
  playFreeze,
  playLeaders,
} from '../../../chaos/orders/orders.ts'
import type { EffectClass } from '../../../chaos/orders/stage.ts'
import { test as base } from '../../support/integration-test.ts'

/** Those who meet at a run, stopped before and after each commit and each send, in every order of these points. */

const test = base
  .extend('observer', { scope: 'file' }, async ({ backend }, { onCleanup }) => {
    const observer = await backend.openDatabase()
    onCleanup(() => observer.close())
    return observer
  })
  .extend('orders', ({ database, elsewhere, observer }) =>
    createOrders({ first: database, second: elsewhere, observer }),
  )

// two who wait for each other need a connection each
describe.skipIf(process.env.MASON_TEST_BACKEND !== 'served')('in every order', () => {
  test.for<[EffectClass, boolean]>([
    ['keyed', true],
    ['keyed', false],
    ['queryable', true],
    ['manual', true],
    ['manual', false],
  ])(
    'a worker that is killed or frozen at each point, with a side effect that is %s, and that notices: %s',
    async ([effect, isNoticed], { orders }) => {
      const points = await listPoints(orders, effect)
      expect(points).toEqual(
        expect.arrayContaining(['after-claim:1', 'before-effect-sent:1', 'after-send:1', 'after-finish:1']),
      )
      // a worker that was overtaken before its side effect never comes to it, of whatever class it is
      const first = effect === 'keyed' ? 0 : points.indexOf('before-effect-intent:1')
      for (const point of points.slice(first)) await playFreeze(orders, point, { effect, isNoticed })
      expect(orders.played.wrong).toEqual([])
      expect(orders.played.orders).toBeGreaterThan(effect === 'keyed' ? 200 : 100)
    },
  )

  test('two workers claim one run', async ({ orders }) => {
    await playClaims(orders)
    expect(orders.played).toMatchObject({ wrong: [], orders: 20 })
  })

  test('a worker ends a run while another claims', async ({ orders }) => {
    await playFinish(orders)
    expect(orders.played).toMatchObject({ wrong: [], orders: 56 })
  })

  test('a run is cancelled that a worker has', async ({ orders }) => {
    for (const point of await listPoints(orders, 'keyed')) await playCancel(orders, point)
    expect(orders.played.wrong).toEqual([])
    expect(Object.keys(orders.played.ends).toSorted()).toEqual(['refused', 'taken'])
  })

  test('a leader of the intake is killed or frozen at each point, and another one leads', async ({
    orders,
  }) => {
    expect(await playLeaders(orders)).toEqual([
      ...[
        'after-pop:1',
        'after-pop:2',
        'before-commit:1',
        'committed-admit:1',
        'before-ack:1',
        'before-ack:2',
      ],
    ])
    expect(orders.played.wrong).toEqual([])
    expect(orders.played.orders).toBeGreaterThan(50)
  })
})
