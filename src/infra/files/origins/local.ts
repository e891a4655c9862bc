import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { businessIdSchema } from '../../../state/run-request.ts'
import { businessMark } from '../../config/files-root.ts'
import { FileFault } from './fault.ts'

/**
 * Where a local mapping of a business points: into its own folder where `{business}` stands in the root for its id, else
 * into the one that all share. Links are followed first, so that none leads out of that folder.
 */
export const localPath = async (
  root: string | null,
  business: string,
  path: string,
  signal: AbortSignal,
): Promise<string> => {
  if (root === null)
    throw new FileFault(
      'it is a local file, and no folder is open to them; set MASON_FILES_ROOT to the folder that local mappings may point into',
    )
  try {
    const folder = await realpath(rootOf(root, business))
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

/** What is no id leads nowhere: an id holds no slashes and begins with a letter or a digit. */
const rootOf = (root: string, business: string): string =>
  root.replaceAll(businessMark, businessIdSchema.safeParse(business).success ? business : '\0')

const absent = new Set([
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'EACCES',
  'ELOOP',
  'ENAMETOOLONG',
  'ERR_INVALID_ARG_VALUE',
])
