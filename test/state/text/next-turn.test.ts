import { expect, test } from 'vitest'
import { nextTurn } from '../../../src/state/text/next-turn.ts'

test('each caller gets a turn of the event loop of its own, first come first served', async () => {
  let turn = 0
  const count = (): void => {
    turn++
    counter = setImmediate(count)
  }
  let counter = setImmediate(count)
  const begun: [name: string, turn: number][] = []
  const work = async (name: string): Promise<void> => {
    for (const part of [1, 2]) {
      await nextTurn()
      begun.push([`${name}${part}`, turn])
    }
  }
  await Promise.all(['a', 'b', 'c'].map(work))
  clearImmediate(counter)
  expect(begun.map(([name]) => name)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
  expect(new Set(begun.map(([, at]) => at)).size).toBe(begun.length)
})
