import type { PreparedFiles } from '../../state/files/ports.ts'
import { isPrepared, type OtherFile, otherFileOf } from '../../state/files/prepared.ts'
import type { OriginFile, RuntimeState } from '../../state/runtime-state.ts'

/** A file whose fault may pass is tried once a turn, so often in all. */
const mostTries = 4

type View = Readonly<Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>>

/** How often a file, or an image's description, failed for a reason that may pass; 0: there is no such reason. */
const triesOf = (state: View, file: OriginFile): number => otherFileOf(state, file)?.tries ?? 0

/** The files that are new, and those that are worth another try: images nobody looked at are, when a model `sees` now. */
export const filesToPrepare = (state: View, sees: boolean): OriginFile[] =>
  state.origin_files.filter((file) => {
    if (sees && otherFileOf(state, file)?.unseen) return true
    const tries = triesOf(state, file)
    return tries > 0 ? tries < mostTries : !isPrepared(state, file)
  })

/** Names of those that earlier turns tried. */
export const filesTried = (state: View): Set<string> =>
  new Set(state.origin_files.filter((file) => triesOf(state, file) > 0).map(({ name }) => name))

/** What preparing brought, beside what earlier turns tried: tries add up, and what went well clears the old note away. */
export const withEarlierTries = (state: View, prepared: PreparedFiles): PreparedFiles => {
  const other_files = { ...prepared.other_files }
  for (const file of state.origin_files) {
    const tries = triesOf(state, file)
    const now = entryOf(other_files, file.name)
    const read = entryOf(prepared.documents, file.name) ?? entryOf(prepared.tables, file.name)
    if (tries > 0 && read)
      other_files[file.name] = {
        ...{ from: read.from, format: read.format, readable: true, facts: {}, notes: [] },
      }
    else if (now?.tries !== undefined) other_files[file.name] = withNote(now, tries + now.tries)
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
