import { isMasonError } from '../../../state/errors.ts'
import { loadAllParts } from '../../load-all-parts.ts'
import { type DoctorCheck, fail, pass } from './check.ts'

/** Whether the product's own nodes and tools load. */
export const checkTools: DoctorCheck = async ({ toolFolders }) => {
  if (toolFolders.length === 0) return []
  try {
    const { files } = await loadAllParts(toolFolders)
    const own = [...files.values()].filter((file) => toolFolders.some((folder) => file.startsWith(folder)))
    return [pass(`${own.length} own nodes and tools load`)]
  } catch (error) {
    if (!isMasonError(error, 'invalid_graph')) throw error
    const { faults } = error.detail as { faults: string[] }
    return faults.map((fault) => fail(fault, 'correct the file'))
  }
}
