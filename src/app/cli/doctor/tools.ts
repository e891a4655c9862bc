import { isMasonError } from '../../../state/errors.ts'
import { loadAllParts } from '../../load-all-parts.ts'
import { type DoctorCheck, fail, pass } from './check.ts'

/** Whether the product's own nodes and tools load. */
export const checkTools: DoctorCheck = async ({ toolFolders, featureFolders }, _, { sources }) => {
  const folders = [...toolFolders, ...featureFolders]
  if (folders.length === 0) return []
  try {
    const { files } = await loadAllParts(toolFolders, [], sources)
    const own = [...files.values()].filter((file) => folders.some((folder) => file.startsWith(folder)))
    return [pass(`${own.length} own nodes and tools load`)]
  } catch (error) {
    if (!isMasonError(error, 'invalid_graph')) throw error
    const { errors } = error.detail as { errors: string[] }
    return errors.map((text) => fail(text, 'correct the file'))
  }
}
