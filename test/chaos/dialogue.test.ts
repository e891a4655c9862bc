// tier: all
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import suite from '../../chaos/suites/dialogue.suite.ts'

test('replies in the language mean the same however they are split, in time that grows with their length', async () => {
  const seed = randomInt(2 ** 31)
  const lines = [`seed ${seed}`]
  const { failures } = await suite.run({
    ...{ seed, scale: 0.002, say: (line) => void lines.push(line) },
    signal: AbortSignal.timeout(50_000),
  })
  expect(failures, lines.join('\n')).toEqual([])
})
