import { describe, expect, test } from 'vitest'
import { matchBySimilarity } from '../../src/tools/understand/scenario-match.ts'

type Row = { name: string; description: string; examples: string[] }

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
