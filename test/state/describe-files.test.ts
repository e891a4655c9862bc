import { expect, test } from 'vitest'
import { describeFiles } from '../../src/context/file-descriptions.ts'
import type { OtherFile, PreparedTable } from '../../src/state/files/prepared-files.ts'
import type { OriginFile } from '../../src/state/runtime-state.ts'
import { estimateTokens } from '../../src/state/text/tokens.ts'

const file = (name: string): OriginFile => ({ name, type: '', local_path: `blob:${name}`, mapping: null })
const words = (length: number): string => 'word '.repeat(length).slice(0, length)

const image = (name: string): OtherFile => {
  const shows = { description: words(2000), text: words(3000), by: 'eye' }
  const facts = { type: 'png', width: 2, height: 1, shows }
  return { from: `blob:${name}`, format: 'image', readable: true, facts, notes: [] }
}
const table: PreparedTable = {
  ...{ from: 'blob:t.csv', format: 'csv', table: 'sales', file: 't.csv', part: null, rows: 3, notes: [] },
  columns: [
    { name: 'month', type: 'date', nulls: 0, distinct: 3, min: null, max: null, mean: null, samples: [] },
  ],
}

/** A table in the middle of described screenshots. */
const stateOf = (images: number) => {
  const shots = Array.from({ length: images }, (_, nth) => `shot-${nth}.png`)
  const names = shots.toSpliced(images / 2, 0, 't.csv')
  return {
    names,
    state: {
      origin_files: names.map(file),
      preprocessed_files: {
        documents: {},
        tables: { 't.csv': table },
        other_files: Object.fromEntries(shots.map((name) => [name, image(name)])),
      },
    },
  }
}

test.each([
  [12, 5200],
  [12, 2600],
  [60, 2600],
])('%i described images leave space for the names and columns of all files in %i tokens', (images, room) => {
  const { names, state } = stateOf(images)
  const description = describeFiles(state, room)
  expect(estimateTokens(description)).toBeLessThanOrEqual(room)
  expect(description.split('\n').filter((line) => line.startsWith('- '))).toEqual(
    names.map((name) => `- ${name} ()`),
  )
  expect(description).toContain('sales, 3 rows; columns: month date')
  expect(description.match(images === 60 ? /read_file describes it/g : / {2}text on it: /g)).toHaveLength(
    images,
  )
})

test('an image has up to a thousand characters each of description and text', () => {
  const description = describeFiles(stateOf(2).state, 5000)
  expect(description).toBe(describeFiles(stateOf(2).state))
  expect(description.split('\n').filter((line) => line.length > 1000)).toHaveLength(4)
})

test('the prepared content of a file is not shown for another file with its name', () => {
  const { state } = stateOf(2)
  const origin_files = state.origin_files.map((one) => ({ ...one, local_path: `${one.local_path}-anew` }))
  expect(describeFiles({ ...state, origin_files })).toBe('- shot-0.png ()\n- t.csv ()\n- shot-1.png ()')
})
