import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { createDialogueParser } from '../../src/dialogue/parser.ts'
import { writeDialogue } from '../../src/dialogue/write.ts'
import { dialogues, readSplit, replies, splitAt } from '../../test/support/dialogues.ts'
import { seededShare } from '../seeded-choice.ts'
import type { Suite } from '../suite.ts'

const samples = 500
const splits = 200
const fuzzMs = 600_000
const batch = 200
/** Characters of the shorter and the longer reply whose times are compared, and how much longer the longer one may take. */
const lengths = [100_000, 1_000_000] as const
const maxRatio = 60

const cutsOf = (text: string, ...key: readonly (string | number)[]): number[] =>
  Array.from({ length: 1 + Math.floor(seededShare(...key, 'n') * 12) }, (_, at) =>
    Math.floor(seededShare(...key, at) * (text.length + 1)),
  )

/** The processor's milliseconds that reading takes, the least of several times: other work on the machine does not count. */
const timeReading = (text: string, chunk: number): number => {
  const times = Array.from({ length: 4 }, () => {
    const since = process.cpuUsage()
    const parser = createDialogueParser({ maxChars: Number.POSITIVE_INFINITY })
    for (let at = 0; at < text.length; at += chunk) parser.push(text.slice(at, at + chunk))
    parser.end()
    const { user, system } = process.cpuUsage(since)
    return (user + system) / 1000
  })
  // less than this is not measured well
  return Math.max(1, Math.min(...times))
}

/** How many times longer ten times the text takes, where it is this one again and again. */
const measureGrowth = (text: string, chunk: number): number => {
  const [short = 0, long = 0] = lengths.map((length) =>
    timeReading(text.repeat(Math.ceil(length / text.length)).slice(0, length), chunk),
  )
  return long / short
}

const suite: Suite = {
  about:
    'replies in the language of the dialogue, whole and broken, split anywhere: the same events, no crash, and time that grows with the length alone',
  async run({ seed, scale, say, signal }) {
    const failures: string[] = []
    const fail = (what: string, text: string): void => void failures.push(`${what}: ${JSON.stringify(text)}`)
    const texts = fc.oneof(replies, dialogues.map(writeDialogue))
    const count = Math.max(1, Math.round(samples * scale))
    let compared = 0
    for (const [nth, text] of fc.sample(texts, { seed, numRuns: count }).entries()) {
      const whole = readSplit([text])
      for (let n = 0; n < splits; n++, compared++)
        if (!isDeepStrictEqual(readSplit(splitAt(text, cutsOf(text, seed, nth, n))), whole))
          fail(`split ${n} has other events`, text)
      if (signal.aborted) break
    }
    say(`${compared} splits of ${count} dialogues`)

    const since = performance.now()
    let fuzzed = 0
    let grown = 0
    let worst = 0
    for (let round = 1; performance.now() - since < fuzzMs * scale && !signal.aborted; round++) {
      const fuzz = fc.sample(texts, { seed: seed + round, numRuns: batch })
      for (const text of fuzz)
        try {
          fuzzed++
          const whole = readSplit([text])
          if (!isDeepStrictEqual(readSplit(text.split('')), whole)) fail('characters have other events', text)
          if (whole.at(-1)?.kind !== 'end') fail('no end', text)
        } catch (error) {
          fail(String(error), text)
        }
      const repeated = fuzz.find((text) => text.length > 0) ?? '<'
      const chunk = round % 2 === 0 ? lengths[1] : 64
      let growth = measureGrowth(repeated, chunk)
      // a collection of garbage can fall into one of them
      if (growth > maxRatio) growth = Math.min(growth, measureGrowth(repeated, chunk))
      if (growth > maxRatio) fail(`ten times the length takes ${Math.round(growth)} times as long`, repeated)
      worst = Math.max(worst, growth)
      grown++
      if (round % 100 === 0) say(`${fuzzed} replies, ${failures.length} failures`)
      // other work of the process, such as a signal
      await new Promise((resolve) => setImmediate(resolve))
    }
    return {
      figures: {
        'splits compared': compared,
        'replies fuzzed': fuzzed,
        'minutes of fuzzing': Math.round((performance.now() - since) / 6000) / 10,
        'replies repeated to 0.1 and 1 MB': grown,
        'the most that ten times the length took': `${worst.toFixed(1)} times as long`,
      },
      failures: failures.slice(0, 20),
    }
  },
}

export default suite
