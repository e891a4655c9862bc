import fc from 'fast-check'
import { expect, test } from 'vitest'
import { streamField } from '../../src/graph/text-streaming.ts'

const streamed = (json: string, cuts: readonly number[]): string => {
  let text = ''
  const take = streamField('answer', (piece) => {
    expect(piece.isWellFormed()).toBe(true)
    text += piece
  })
  const places = [...new Set([0, ...cuts.map((cut) => cut % (json.length + 1)), json.length])].sort(
    (a, b) => a - b,
  )
  for (const [at, place] of places.slice(1).entries()) take(json.slice(places[at], place), 1)
  return text
}

test('the text of a field comes out whole, wherever its JSON is cut', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.array(fc.nat()),
      fc.boolean(),
      (answer, cuts, escaped) => {
        const json = JSON.stringify({ before: 1, answer, after: 'x' }, null, 1)
        const written = escaped
          ? json.replaceAll(
              /[\u0080-\uffff]/g,
              (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
            )
          : json
        expect(streamed(written, cuts)).toBe(answer)
      },
    ),
  )
})

test('a new attempt starts over, and JSON without the field gives nothing', () => {
  const emitted: [string, number][] = []
  const take = streamField('answer', (text, attempt) => void emitted.push([text, attempt]))
  take('{"answer": "Hel', 1)
  take('{"answer": "Good"', 2)
  take(' and more', 2)
  take('no JSON', 3)
  expect(emitted).toEqual([
    ['Hel', 1],
    ['Good', 2],
  ])
})
