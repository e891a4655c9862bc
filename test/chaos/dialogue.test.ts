// tier: all
import { expect, test } from 'vitest'
import suite from '../../chaos/suites/dialogue.suite.ts'
import { testSeed } from '../support/random.ts'

test('replies in the language mean the same however they are split, in time that grows with their length', async () => {
  const lines = [`seed ${testSeed}`]
  const { failures } = await suite.run({
    ...{ seed: testSeed, scale: 0.002, say: (line) => void lines.push(line) },
    signal: AbortSignal.timeout(120_000),
  })
  expect(failures, lines.join('\n')).toEqual([])
})
