import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { toSettingsError } from '../../state/errors.ts'

/** Creates a folder of DATA_DIR and those above it, for this user alone; one that is there stays as it is. */
export const createDataFolder = async (path: string): Promise<void> => {
  try {
    await createFolder(path, 0o700)
  } catch (error) {
    throw toSettingsError(
      `DATA_DIR: the folder ${path} cannot be created: ${(error as Error).message}`,
      'set DATA_DIR to a folder that this user may create or write to',
      error,
    )
  }
}

/**
 * Creates a folder and those above it. Step by step, since Node's own recursion never ends where a file system takes no
 * folders, such as /proc.
 */
export const createFolder = async (path: string, mode = 0o777): Promise<void> => {
  const create = (): Promise<void> =>
    mkdir(path, { mode }).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error
    })
  await create().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' || dirname(path) === path) throw error
    await createFolder(dirname(path), mode)
    await create()
  })
}
