import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { FileFault } from './fault.ts'

/** Where a local mapping points. Links are followed first, so that none leads out of the folder. */
export const localPath = async (root: string | null, path: string, signal: AbortSignal): Promise<string> => {
  if (root === null)
    throw new FileFault(
      'it is a local file, and no folder is open to them; set MASON_FILES_ROOT to the folder that local mappings may point into',
    )
  try {
    const folder = await realpath(root)
    const found = await realpath(join(folder, path))
    const inside = relative(folder, found)
    if (!inside.startsWith('..') && !isAbsolute(inside) && (await stat(found)).isFile()) return found
  } catch (error) {
    signal.throwIfAborted()
    const { code } = error as NodeJS.ErrnoException
    if (!absent.has(code ?? '') && !(error instanceof TypeError)) throw error
  }
  throw new FileFault(`it is not there: ${path}; check the path of its mapping`)
}

const absent = new Set([
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'EACCES',
  'ELOOP',
  'ENAMETOOLONG',
  'ERR_INVALID_ARG_VALUE',
])
