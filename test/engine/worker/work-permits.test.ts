import { expect, test } from 'vitest'
import { createWorkPermits as createSharedPermits } from '../../../src/engine/worker/work-permits.ts'
import { deferred } from '../../support/deferred.ts'

const { signal } = new AbortController()
/** Permits of which every business may hold all, or as many as given. */
const createWorkPermits = (count: number, limits: Readonly<Record<string, number>> = {}) =>
  createSharedPermits(count, {
    worked() {},
    limitVisits: (business) => limits[business] ?? count,
  })
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

test('a visit gives its permit back while it waits for a model, and takes one again in its turn', async () => {
  const permits = createWorkPermits(1)
  const order: string[] = []
  const answer = deferred<void>()
  const visit = await permits.beginVisit('a', signal)
  const waiting = visit.without(() => answer.promise).then(() => order.push('a goes on'))
  const other = await permits.beginVisit('b', signal)
  answer.resolve()
  await settled()
  expect([order, permits.held, permits.waiting()]).toEqual([[], 1, ['a']])
  other.end()
  await waiting
  expect([order, permits.held, permits.waiting()]).toEqual([['a goes on'], 1, []])
  visit.end()
  expect(permits.held).toBe(0)
})

test('a permit goes to the business that holds the fewest, whichever came first', async () => {
  const permits = createWorkPermits(2)
  const order: string[] = []
  const floods = await Promise.all([permits.beginVisit('flood', signal), permits.beginVisit('flood', signal)])
  const begin = (business: string) =>
    permits.beginVisit(business, signal).then((visit) => {
      order.push(business)
      return visit
    })
  const late = [begin('flood'), begin('other')]
  const claiming = permits.claim().then(async (permit) => {
    order.push('a claim')
    await permit[Symbol.asyncDispose]()
  })
  floods[0]?.end()
  const [flood, other] = late
  ;(await other)?.end()
  await claiming
  ;(await flood)?.end()
  floods[1]?.end()
  expect([order, permits.held]).toEqual([['other', 'a claim', 'flood'], 0])
})

test('a visit that takes long, as with a slow tool, is taken to wait, and has a permit again before it commits', async () => {
  const permits = createWorkPermits(1)
  const slow = await permits.beginVisit('a', signal)
  // begins once the slow one has lost its permit
  const other = await permits.beginVisit('b', signal)
  const renewed = slow.renew()
  await settled()
  other.end()
  await renewed
  expect(permits.held).toBe(1)
  slow.end()
  expect(permits.held).toBe(0)
})

test('a visit that is stopped while it waits goes on without a permit, and ends once', async () => {
  const permits = createWorkPermits(1)
  const control = new AbortController()
  const visit = await permits.beginVisit('a', control.signal)
  const answer = deferred<void>()
  const waiting = visit.without(() => answer.promise)
  const other = await permits.beginVisit('b', signal)
  control.abort(new Error('handed back'))
  answer.resolve()
  await waiting
  await visit.renew()
  visit.end()
  expect(permits.held).toBe(1)
  other.end()
  expect(permits.held).toBe(0)
  await expect(permits.beginVisit('a', control.signal)).rejects.toThrow('handed back')
})

test('a business that may have one visit holds up its own alone, and no claim', async () => {
  const permits = createWorkPermits(4, { flood: 1 })
  const order: string[] = []
  const first = await permits.beginVisit('flood', signal)
  const second = permits.beginVisit('flood', signal).then((visit) => {
    order.push('flood')
    return visit
  })
  const others = await Promise.all([permits.beginVisit('other', signal), permits.beginVisit('other', signal)])
  const claim = await permits.claim()
  const late = permits.beginVisit('other', signal).then((visit) => {
    order.push('other')
    return visit
  })
  await settled()
  expect([order, permits.held]).toEqual([[], 4])
  // the business that holds the fewest may not have it
  others[0]?.end()
  await settled()
  expect(order).toEqual(['other'])
  first.end()
  await second
  expect(order).toEqual(['other', 'flood'])
  for (const visit of [others[1], await second, await late]) visit?.end()
  await claim[Symbol.asyncDispose]()
  expect(permits.held).toBe(0)
})
