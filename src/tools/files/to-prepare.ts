import type { PreparedFiles } from '../../state/files/ports.ts'
import { isPrepared, type OtherFile, otherFileOf } from '../../state/files/prepared.ts'
import type { OriginFile, RuntimeState } from '../../state/runtime-state.ts'

/** A file whose fault may pass is tried once a turn, so often in all. */
const mostTries = 4

type View = Readonly<Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>>

/** The entry of a file, or of an image's description, that failed for a reason that may pass; null: there is no such reason. */
const failedBefore = (state: View, file: OriginFile): OtherFile | null => {
  const entry = otherFileOf(state, file)
  return entry?.tries !== undefined ? entry : null
}

/** The files that are new, and those that are worth another try: images nobody looked at are, when a model `sees` now. */
export const filesToPrepare = (state: View, sees: boolean): OriginFile[] =>
  state.origin_files.filter((file) => {
    if (sees && otherFileOf(state, file)?.unseen) return true
    const failed = failedBefore(state, file)
    return failed ? (failed.tries ?? 0) < mostTries : !isPrepared(state, file)
  })

/** Names of those that earlier turns tried. */
export const filesTried = (state: View): Set<string> =>
  new Set(state.origin_files.filter((file) => failedBefore(state, file)).map(({ name }) => name))

/** What preparing brought, beside what earlier turns tried: tries add up, and what went well clears the old note away. */
export const withEarlierTries = (state: View, prepared: PreparedFiles): PreparedFiles => {
  const other_files = { ...prepared.other_files }
  for (const file of state.origin_files) {
    const failed = failedBefore(state, file)
    const now = Object.hasOwn(other_files, file.name) ? other_files[file.name] : undefined
    const read = entryOf(prepared.documents, file.name) ?? entryOf(prepared.tables, file.name)
    if (failed && read)
      other_files[file.name] = {
        ...{ from: read.from, format: read.format, readable: true, facts: {}, notes: [] },
      }
    else if (now?.tries !== undefined)
      other_files[file.name] = withNote(now, (failed?.tries ?? 0) + now.tries)
  }
  return { ...prepared, other_files }
}

const entryOf = <Entry>(entries: Readonly<Record<string, Entry>>, name: string): Entry | undefined =>
  Object.hasOwn(entries, name) ? entries[name] : undefined

const withNote = (entry: OtherFile, tries: number): OtherFile => {
  const note =
    tries < mostTries ? 'the next turn tries it again' : `it was tried ${tries} times and is left alone now`
  return { ...entry, tries, notes: [...entry.notes, note] }
}
