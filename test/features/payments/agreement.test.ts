import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifyLines } from '../../../src/features/payments/ap2/verify.ts'
import { checkIndependently } from './independent-checker.ts'
import { randomLines } from './random-mandates.ts'

/** In `npm test` the same thousand each time; `MASON_TEST_MANDATES=10000` takes other ones. */
const { MASON_TEST_MANDATES: wanted } = process.env
const count = Number(wanted ?? 1000)
const seed = wanted === undefined ? 15 : Date.now()

test('mason ap2 verify and a checker written apart from it agree on random mandates, valid ones and others', {
  timeout: 180_000 + 60 * count,
}, async () => {
  const lines: string[] = []
  const input = async function* () {
    for (;;) yield Buffer.from(`${lines.shift()}\n`)
  }
  const verdicts = verifyLines(input(), () => Number.NaN)
  const outcomes: Record<string, number> = {}
  await fc.assert(
    fc.asyncProperty(randomLines, async ({ line, change }) => {
      const { why, ...expected } = checkIndependently(line)
      lines.push(JSON.stringify(line))
      const { ok, stage, violations } = (await verdicts.next()).value
      const outcome = `${line.kind} ${ok ? 'ok' : stage}`
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      if (ok === expected.ok && stage === expected.stage) return
      expect({ change, ok, stage, violations }).toEqual({ change, ...expected, violations: why })
    }),
    // its message has the seed; shrinking would take minutes
    { numRuns: count, seed, endOnFailure: true },
  )
  // enough of each that agreeing says something
  for (const kind of ['payment', 'checkout'])
    for (const outcome of ['ok', 'crypto', 'constraints'])
      expect(outcomes[`${kind} ${outcome}`] ?? 0, `${kind} ${outcome}`).toBeGreaterThan(count / 50)
})
