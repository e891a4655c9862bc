import { expect, test } from 'vitest'
import { keepWithView } from '../../src/features/keep-with-view.ts'

const createCounted = () => {
  const counted = { reads: 0, read: async () => ++counted.reads }
  return counted
}

test('a read is kept by key until the view is another object', async () => {
  const keep = keepWithView<number>()
  const { read } = createCounted()
  const settings = { view: {} }
  const asked = [keep(settings, 'a', read), keep(settings, 'a', read), keep(settings, 'b', read)]
  expect(await Promise.all(asked)).toEqual([1, 1, 2])
  settings.view = {}
  expect(await keep(settings, 'a', read)).toBe(3)
})

test('a read that a change overtakes is read again under the new view', async () => {
  const keep = keepWithView<string>()
  const settings = { view: {} }
  let answer = (_: string): void => {}
  const old = new Promise<string>((resolve) => {
    answer = resolve
  })
  const early = keep(settings, 'a', () => old)
  settings.view = {}
  answer('as it was')
  expect(await early).toBe('as it was')
  expect(await keep(settings, 'a', async () => 'as it is')).toBe('as it is')
})

test('a read that fails is not kept', async () => {
  const keep = keepWithView<number>()
  const settings = { view: {} }
  await expect(keep(settings, 'a', () => Promise.reject(new Error('gone')))).rejects.toThrow('gone')
  expect(await keep(settings, 'a', createCounted().read)).toBe(1)
})
