import { expect, test } from 'vitest'
import { createPermits } from '../../../src/infra/lib/permits.ts'

test('a caller that stops waiting leaves the queue, and the permit goes to the next', async () => {
  const slots = createPermits(1)
  const first = await slots.take()
  const given = new AbortController()
  const second = slots.take(given.signal)
  const third = slots.take(new AbortController().signal)
  given.abort(new Error('cancelled'))
  await expect(second).rejects.toThrow('cancelled')
  await first[Symbol.asyncDispose]()
  const place = await third
  expect(slots.free).toBe(0)
  await expect(slots.take(given.signal)).rejects.toThrow('cancelled')
  await place[Symbol.asyncDispose]()
  expect(slots.free).toBe(1)
})
