import { isSharedRoot } from '../../infra/config/files-root.ts'
import { countSharing, sharedRootRemedy } from '../../infra/files/shared-root.ts'
import type { Check } from '../doctor.ts'
import { hasDatabase } from './database.ts'
import { readDatabase } from './read-database.ts'

/** Whether businesses can name each other's files in local mappings. */
export const checkFiles: Check = async (config) => {
  const { filesRoot } = config
  if (filesRoot === null) return []
  if (!isSharedRoot(filesRoot))
    return [{ ok: true, text: `local mappings: each business below its own ${filesRoot}` }]
  const text = `local mappings: all businesses below ${filesRoot}`
  const businesses = hasDatabase(config) ? ((await readDatabase(config, countSharing)) ?? 0) : 0
  if (businesses <= 1) return [{ ok: true, text }]
  return [
    {
      ok: true,
      text: `${text}; any of ${businesses} can read the files of the others`,
      remedy: sharedRootRemedy,
    },
  ]
}
