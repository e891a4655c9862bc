import { expect, test } from 'vitest'
import { createFairPlaces } from '../../../src/infra/files/fair-places.ts'

const { signal } = new AbortController()
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Takes places for a business, one after the other; `got` are those it has. */
const crowd = (places: ReturnType<typeof createFairPlaces>, business: string, many: number) => {
  const got: AsyncDisposable[] = []
  for (let n = 0; n < many; n++)
    void places.take(business, new AbortController().signal).then((place) => got.push(place))
  return got
}

test('one slow business gets half of the places, and there is always one for the next', async () => {
  const places = createFairPlaces(16)
  const crowds = ['a', 'b', 'c', 'd', 'e'].map((business) => crowd(places, business, 40))
  await settled()
  expect(crowds.map(({ length }) => length)).toEqual([8, 4, 2, 1, 1])
})

test('a place that comes free goes to who holds the fewest, whoever came first', async () => {
  const places = createFairPlaces(4)
  const slow = crowd(places, 'slow', 9)
  const other = crowd(places, 'other', 2)
  const third = crowd(places, 'third', 2)
  await settled()
  expect([slow.length, other.length, third.length]).toEqual([2, 1, 1])
  await slow[0]?.[Symbol.asyncDispose]()
  await settled()
  // each holds one, and one is free: nobody may hold more than that
  expect([slow.length, other.length, third.length]).toEqual([2, 1, 1])
  await third[0]?.[Symbol.asyncDispose]()
  await settled()
  expect([slow.length, other.length, third.length]).toEqual([2, 1, 2])
})

test('whoever gives up leaves the line', async () => {
  const places = createFairPlaces(2)
  const control = new AbortController()
  const first = await places.take('a', signal)
  const given = places.take('a', control.signal)
  const last = crowd(places, 'a', 1)
  control.abort(new Error('cancelled'))
  await expect(given).rejects.toThrow('cancelled')
  await first[Symbol.asyncDispose]()
  await settled()
  expect([last.length, places.mayTake('a')]).toEqual([1, false])
  await expect(places.take('b', control.signal)).rejects.toThrow('cancelled')
})
