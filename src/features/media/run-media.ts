import { findFile } from '../../state/files/find-file.ts'
import type { Files } from '../../state/ports/files.ts'
import type { MediaRequest } from '../../state/ports/media.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'

type ReadMedia = { ok: true; files: NonNullable<MediaRequest['files']> } | { ok: false; error: string }

/** The run's files of these names, for a model; or what is wrong with one of them. */
export const readRunMedia = async (
  state: Pick<RuntimeState, 'origin_files'>,
  files: Pick<Files, 'read'>,
  names: readonly string[],
  kind: RegExp,
  signal: AbortSignal,
): Promise<ReadMedia> => {
  const read = []
  for (const path of names) {
    const file = findFile(state.origin_files, path)
    if (!file) {
      const known = state.origin_files.map(({ name }) => name).join(', ')
      return { ok: false, error: `Error: there is no file '${path}'. Files there are: ${known || 'none'}.` }
    }
    if (!kind.test(file.type))
      return { ok: false, error: `Error: '${file.name}' is ${file.type}, which this tool does not take.` }
    read.push({ name: file.name, mime_type: file.type, bytes: await files.read(file, signal) })
  }
  return { ok: true, files: read }
}
