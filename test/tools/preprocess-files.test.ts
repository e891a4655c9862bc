import { expect, test } from 'vitest'
import type { OtherFile } from '../../src/state/files/prepared-files.ts'
import type { PreparedFiles } from '../../src/state/ports/files.ts'
import { emptyState, type OriginFile } from '../../src/state/runtime-state.ts'
import preprocessFiles, {
  listPendingFiles,
  withEarlierTries,
} from '../../src/tools/files/preprocess-files.tool.ts'

const file = (path: string): OriginFile => ({
  ...{ name: 'a.csv', type: 'text/csv', local_path: '', mapping: { provider: 'aws', path } },
})
const failed = (path: string, tries?: number): OtherFile => ({
  ...{ from: `aws:${path}`, format: 'unknown', readable: false, facts: {}, notes: ['aws is down'] },
  ...(tries !== undefined && { tries }),
})
const stateOf = (origin: OriginFile, entry?: OtherFile) => ({
  ...emptyState,
  origin_files: [origin],
  preprocessed_files: { documents: {}, tables: {}, other_files: entry ? { 'a.csv': entry } : {} },
})
const nothing: PreparedFiles = { origin_files: [], documents: {}, tables: {}, other_files: {} }

test('a transient error is retried, four times in all; a permanent one never; another file of the name at once', () => {
  let entry = failed('a')
  for (const wanted of [1, 2, 3, 4]) {
    const state = stateOf(file('a'), wanted === 1 ? undefined : entry)
    expect(listPendingFiles(state, true)).toEqual([file('a')])
    const { other_files } = withEarlierTries(state, { ...nothing, other_files: { 'a.csv': failed('a', 1) } })
    entry = other_files['a.csv'] as OtherFile
    expect(entry.tries).toBe(wanted)
    expect(entry.notes.at(-1)).toBe(
      wanted < 4 ? 'the next turn tries it again' : 'it was tried 4 times and is left alone now',
    )
  }
  expect(listPendingFiles(stateOf(file('a'), entry), true)).toEqual([])
  expect(listPendingFiles(stateOf(file('a'), failed('a')), true)).toEqual([])
  expect(listPendingFiles(stateOf(file('b'), entry), true)).toEqual([file('b')])
  const other = withEarlierTries(stateOf(file('b'), entry), {
    ...nothing,
    other_files: { 'a.csv': failed('b', 1) },
  })
  expect(other.other_files['a.csv']?.tries).toBe(1)
})

test('an image without a description is tried again when there is a vision model, and only then', async () => {
  const unseen = { ...failed('a'), format: 'image', readable: true, unseen: true as const }
  const state = stateOf(file('a'), unseen)
  const hasWork = (sees: boolean) =>
    preprocessFiles.hasWork?.({ models: { hasVision: () => sees } } as never, state as never)
  expect(preprocessFiles.skip?.(state)).toBe(false)
  expect([await hasWork(false), await hasWork(true)]).toEqual([false, true])
  expect(await preprocessFiles.hasWork?.({ models: {} } as never, stateOf(file('b'), unseen))).toBe(true)
})
