import { describe, expect, test } from 'vitest'
import { findHighParameters, findLiteralSpreads } from '../../scripts/source-tree.ts'

const at = (text: string) => [{ path: 'a.ts', text }]

describe('a check of the source', () => {
  test.each([
    ['const a = { b, ...{ c, d } }', true],
    ['const a = [\n...[b, c]]', true],
    ['const a = [...([b] as const)]', true],
    ['call(a, ...[b, c])', true],
    ['const a = { b: { ...{ c } } }', true],
    ['const a = { ...(b && { c }) }', false],
    ['const a = [...(b ? [c] : [])]', false],
    ['const a = [...[b, c].map(d)]', false],
    ['const a = { ...b, ...c() }', false],
    ['const text = "...{ a }" // ...[b]', false],
  ])('finds literals that are spread: %s', (text, isFound) => {
    expect(findLiteralSpreads(at(text))).toEqual(isFound ? [`a.ts:${text.includes('\n') ? 2 : 1}`] : [])
  })

  test('finds parameters above $9 with their lines', () => {
    expect(findHighParameters(at('SELECT $1, $9::int,\n $10::text, $name, $123'))).toEqual([
      'a.ts:2: $10',
      'a.ts:2: $123',
    ])
  })
})
