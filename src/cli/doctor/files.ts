import { isSharedRoot } from '../../infra/config/files-root.ts'
import { countSharing, sharedRootRemedy } from '../../infra/files/shared-root.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Check } from '../doctor.ts'
import { hasDatabase } from './database.ts'
import { openToRead } from './registry.ts'

/** Whether businesses can name each other's files in local mappings. */
export const checkFiles: Check = async (config) => {
  const { filesRoot } = config
  if (filesRoot === null) return []
  if (!isSharedRoot(filesRoot))
    return [{ ok: true, text: `local mappings: each business below its own ${filesRoot}` }]
  const text = `local mappings: all businesses below ${filesRoot}`
  const businesses = hasDatabase(config) ? await businessesOf(config) : 0
  if (businesses <= 1) return [{ ok: true, text }]
  return [
    {
      ok: true,
      text: `${text}; any of ${businesses} can read the files of the others`,
      remedy: sharedRootRemedy,
    },
  ]
}

const businessesOf = async (config: Parameters<Check>[0]): Promise<number> => {
  const database = await openToRead(config).catch((error: unknown) => {
    if (isMasonError(error, 'data_dir_locked')) return null
    throw error
  })
  if (database === null) return 0
  try {
    return await countSharing(database)
  } finally {
    await database.close()
  }
}
