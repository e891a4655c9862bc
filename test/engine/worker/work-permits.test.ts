import { expect, test } from 'vitest'
import { createWorkPermits } from '../../../src/engine/worker/work-permits.ts'
import { deferred } from '../../support/deferred.ts'

const { signal } = new AbortController()
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

test('a visit gives its permit back while it waits for a model, and takes one again in its turn', async () => {
  const permits = createWorkPermits(1)
  const order: string[] = []
  const answer = deferred<void>()
  const visit = await permits.beginVisit('a', signal)
  const waiting = visit.without(() => answer.promise).then(() => order.push('a goes on'))
  const other = await permits.beginVisit('b', signal)
  answer.resolve()
  const claiming = permits.claim('a').then(async (permit) => {
    order.push('a claims')
    await permit[Symbol.asyncDispose]()
  })
  await settled()
  expect([order, permits.held]).toEqual([[], 1])
  other.end()
  await waiting
  expect(order).toEqual(['a goes on'])
  visit.end()
  await claiming
  expect([order, permits.held]).toEqual([['a goes on', 'a claims'], 0])
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
  for (const visit of floods) {
    visit.end()
    await settled()
  }
  for (const visit of await Promise.all(late)) visit.end()
  expect([order, permits.held]).toEqual([['other', 'flood'], 0])
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
