import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { matchBySimilarity, matchScenario } from '../../src/tools/understand/scenario-match.ts'

type Row = { name: string; description: string; examples: string[] }
type Labelled = [scenario: string, prompt: string]
/** Six scenarios, and requests in English, Chinese and German that fit them or none. The examples were completed for the misses of the first set only. */
const set: {
  scenarios: Row[]
  prompts: Labelled[]
  others: string[]
  held_out_prompts: Labelled[]
  held_out_others: string[]
} = JSON.parse(await readFile(new URL('./scenario-prompts.json', import.meta.url), 'utf8'))

const match = (prompt: string, rows = set.scenarios): string | null =>
  matchScenario(prompt, rows)?.name ?? null

describe('a scenario by rule', () => {
  test.each([
    ['the prompts it was made with', set.prompts, set.others],
    ['prompts it was not made with', set.held_out_prompts, set.held_out_others],
  ])('is right for nine of ten of %s, and never wrong', (_, prompts, others) => {
    expect([prompts.length, others.length]).toEqual([42, 20])
    const chosen = prompts.map(([scenario, prompt]) => ({ scenario, prompt, got: match(prompt) }))
    expect(chosen.filter(({ scenario, got }) => got !== null && got !== scenario)).toEqual([])
    expect(chosen.filter(({ scenario, got }) => got === scenario).length).toBeGreaterThanOrEqual(38)
    expect(others.filter((prompt) => match(prompt) !== null)).toEqual([])
  })

  test('is not chosen by one word in common', () => {
    for (const prompt of [
      'What is the order of the planets?',
      'Which leaves are edible?',
      '写一个关于酒店的故事。',
    ])
      expect(match(prompt)).toBeNull()
  })

  test('is not chosen where two rows have the words', () => {
    const row = (name: string): Row => ({
      name,
      description: '',
      examples: ['Cancel the booking of a hotel'],
    })
    expect(match('Please cancel my hotel booking', [row('a')])).toBe('a')
    expect(match('Please cancel my hotel booking', [row('a'), row('b')])).toBeNull()
  })

  test('is found in languages without spaces', () => {
    const rows = [
      { name: 'ja', description: '', examples: ['パスワードをリセットしたい'] },
      { name: 'th', description: '', examples: ['สินค้าของฉันอยู่ที่ไหน'] },
    ]
    expect(match('パスワードのリセット方法', rows)).toBe('ja')
    expect(match('สินค้าของฉันยังไม่มา', rows)).toBe('th')
  })

  test.each(['', '?!', '4711', 'the and of', '的了吗'])(
    'is none for a request that says nothing: %j',
    (prompt) => {
      expect(match(prompt)).toBeNull()
    },
  )
})

describe('a scenario by similarity', () => {
  const rows: Row[] = [
    { name: 'a', description: 'A', examples: ['a1', 'a2'] },
    { name: 'b', description: 'B', examples: [] },
  ]
  const closest = async (similarityOf: (text: string) => number): Promise<string | null> =>
    (
      await matchBySimilarity(
        'x',
        rows,
        async (_text, standing) => standing.map(similarityOf),
        new AbortController().signal,
      )
    )?.name ?? null

  test('is the one with the closest text', async () => {
    expect(await closest((text) => (text === 'a2' ? 0.6 : 0.1))).toBe('a')
    expect(await closest((text) => (text === 'B' ? 0.6 : 0.1))).toBe('b')
  })

  test('is none where all texts are about as close, however close they are to this model', async () => {
    expect(await closest((text) => (text === 'a2' ? 0.86 : 0.84))).toBeNull()
    expect(await closest(() => 1)).toBeNull()
  })

  test('is none where another row is nearly as close, or a request of no scenario', async () => {
    expect(await closest((text) => ({ a2: 0.7, B: 0.68 })[text] ?? 0.1)).toBeNull()
    expect(await closest((text) => (text === 'a2' ? 0.7 : text.includes('poem') ? 0.65 : 0.1))).toBeNull()
  })

  test('is none without an embedding model', async () => {
    expect(await matchBySimilarity('x', rows, async () => null, new AbortController().signal)).toBeNull()
  })
})
