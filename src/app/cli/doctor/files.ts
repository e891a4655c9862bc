import { countBusinessesSharingRoot, sharedRootRemedy } from '../../../files/shared-files-root.ts'
import { isSharedRoot } from '../../../infra/config/storage.ts'
import { type DoctorCheck, pass } from './check.ts'
import { hasDatabase, withUnmigratedDatabase } from './database.ts'

/** Whether a business can name the files of another in local mappings. */
export const checkFiles: DoctorCheck = async (config) => {
  const { filesRoot } = config
  if (filesRoot === null) return []
  if (!isSharedRoot(filesRoot))
    return [pass(`local mappings: each business has its own folder, ${filesRoot}`)]
  const text = `local mappings: all businesses use ${filesRoot}`
  const businesses = hasDatabase(config)
    ? ((await withUnmigratedDatabase(config, countBusinessesSharingRoot)) ?? 0)
    : 0
  if (businesses <= 1) return [pass(text)]
  return [pass(`${text}; each of the ${businesses} can read the files of the others`, sharedRootRemedy)]
}
