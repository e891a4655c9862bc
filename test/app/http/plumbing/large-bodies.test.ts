import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createLargeBodies } from '../../../../src/app/http/plumbing/large-bodies.ts'

it('large bodies are read one at a time, those of many from one caller after the one of another', async () => {
  const read = createLargeBodies()
  const order: string[] = []
  const begin = (caller: string) =>
    read(caller, async (step) => {
      order.push(`${caller} begins`)
      await step(() => undefined)
      order.push(`${caller} ends`)
    })
  await Promise.all([begin('many'), begin('many'), begin('many'), begin('one')])
  expect(order.map((line) => line.split(' ')[0])).toEqual(
    ['many', 'one', 'many', 'many'].flatMap((caller) => [caller, caller]),
  )
})

it('a body that cannot be read leaves its turn to the next', async () => {
  const read = createLargeBodies()
  const failed = read('a', (step) => step(() => Promise.reject(new Error('no JSON'))))
  const next = read('a', async () => undefined)
  await expect(failed).rejects.toThrow('no JSON')
  await next
})

it('the event loop turns before and after each step of a large body', async () => {
  const read = createLargeBodies()
  let turns = 0
  let isOver = false
  const count = async (): Promise<void> => {
    for (; !isOver; turns++) await setImmediate()
  }
  const counted = count()
  const seen: number[] = []
  await read('a', async (step) => {
    await step(() => seen.push(turns))
    await step(() => seen.push(turns))
  })
  isOver = true
  await counted
  expect(seen[0]).toBeGreaterThan(0)
  expect(seen[1]).toBeGreaterThan(seen[0] ?? 0)
  expect(turns).toBeGreaterThan(seen[1] ?? 0)
})
