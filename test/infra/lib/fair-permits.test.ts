import { expect, test } from 'vitest'
import { createFairPermits } from '../../../src/infra/lib/permits.ts'

const { signal } = new AbortController()
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Takes places for a business, one after the other; `got` are those it has. */
const crowd = (places: ReturnType<typeof createFairPermits>, business: string, many: number) => {
  const got: AsyncDisposable[] = []
  for (let n = 0; n < many; n++)
    void places.acquire(business, new AbortController().signal).then((permit) => got.push(permit))
  return got
}

test('one slow business gets half of the permits, and one is always free for the next business', async () => {
  const places = createFairPermits(16)
  const crowds = ['a', 'b', 'c', 'd', 'e'].map((business) => crowd(places, business, 40))
  await settled()
  expect(crowds.map(({ length }) => length)).toEqual([8, 4, 2, 1, 1])
})

test('a permit that becomes free goes to the business that holds the fewest, whichever came first', async () => {
  const places = createFairPermits(4)
  const slow = crowd(places, 'slow', 9)
  const other = crowd(places, 'other', 2)
  const third = crowd(places, 'third', 2)
  await settled()
  expect([slow.length, other.length, third.length]).toEqual([2, 1, 1])
  await slow[0]?.[Symbol.asyncDispose]()
  await settled()
  // each holds one, and one is free: no business may hold more
  expect([slow.length, other.length, third.length]).toEqual([2, 1, 1])
  await third[0]?.[Symbol.asyncDispose]()
  await settled()
  expect([slow.length, other.length, third.length]).toEqual([2, 1, 2])
})

test('a caller that aborts leaves the queue', async () => {
  const places = createFairPermits(2)
  const control = new AbortController()
  const first = await places.acquire('a', signal)
  const given = places.acquire('a', control.signal)
  const last = crowd(places, 'a', 1)
  control.abort(new Error('cancelled'))
  await expect(given).rejects.toThrow('cancelled')
  await first[Symbol.asyncDispose]()
  await settled()
  expect([last.length, places.isFree('a')]).toEqual([1, false])
  await expect(places.acquire('b', control.signal)).rejects.toThrow('cancelled')
})
