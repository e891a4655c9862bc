import { expect, test } from 'vitest'
import { hashSpace } from '../../../../src/features/user-memory/policy/hash-embedding.ts'
import { createTextSimilarity } from '../../../../src/features/user-memory/store/text-similarity.ts'

const caller = { business_id: 'default', user_id: null, run_id: null }
const { signal } = new AbortController()
const embedderOf = (spaces: string[]) => {
  const asked: (readonly string[])[] = []
  const embed = async (_space: string, texts: readonly string[]): Promise<number[][]> => {
    asked.push(texts)
    return texts.map((text) => (text.startsWith('a') ? [1, 0] : [0, 1]))
  }
  return { asked, embed, current: () => spaces[Math.min(asked.length, spaces.length - 1)] ?? '' }
}

test('standing texts are embedded once for all callers, and again when the model changes', async () => {
  const embedder = embedderOf(['m 1', 'm 1', 'm 2'])
  const similarityFor = createTextSimilarity(embedder)
  expect(await similarityFor(caller).compare('a', ['a1', 'b1', 'a1'], signal)).toEqual([1, 0, 1])
  expect(await similarityFor({ ...caller, user_id: 'u2' }).compare('b', ['b1', 'a1', 'b2'], signal)).toEqual([
    1, 0, 1,
  ])
  expect(await similarityFor(caller).compare('a', ['a1'], signal)).toEqual([1])
  expect(embedder.asked).toEqual([
    ['a', 'a1', 'b1'],
    ['b', 'b2'],
    ['a', 'a1'],
  ])
})

test('without an embedding model nothing is compared', async () => {
  const embedder = embedderOf([hashSpace])
  expect(await createTextSimilarity(embedder)(caller).compare('a', ['a1'], signal)).toBeNull()
  expect(embedder.asked).toEqual([])
})
