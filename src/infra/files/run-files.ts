import { readFile, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { MasonError } from '../../state/errors.ts'
import type { Files, Sql } from '../../state/ports.ts'
import { readBlob } from '../runs/run-log.ts'

/** The files of one business's run: uploads by their hash, `local` mappings inside MASON_FILES_ROOT. */
export const createFiles = (options: { sql: Sql; tenant: string; filesRoot: string | null }): Files => ({
  async read(file, signal) {
    if (file.local_path.startsWith('blob:')) {
      const bytes = await readBlob(options.sql, options.tenant, file.local_path.slice('blob:'.length))
      if (bytes) return bytes
      throw new MasonError('not_found', `the bytes of "${file.name}" are gone`, {
        remedy: 'upload the file again',
      })
    }
    if (file.mapping?.provider === 'local')
      return readLocal(options.filesRoot, file.mapping.path, file.name, signal)
    throw new MasonError('not_found', `"${file.name}" has no bytes that can be read here`)
  },
})

/** Links are followed first, so that none leads out of the folder. */
const readLocal = async (
  root: string | null,
  path: string,
  name: string,
  signal: AbortSignal,
): Promise<Uint8Array> => {
  if (root === null)
    throw new MasonError('not_found', `"${name}" is a local file, and no folder is open to them`, {
      remedy: 'set MASON_FILES_ROOT to the folder that local mappings may point into',
    })
  try {
    const folder = await realpath(root)
    const found = await realpath(join(folder, path))
    const inside = relative(folder, found)
    if (!inside.startsWith('..') && !isAbsolute(inside)) return await readFile(found, { signal })
  } catch (error) {
    signal.throwIfAborted()
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'EISDIR' && code !== 'EACCES') throw error
  }
  throw new MasonError('not_found', `"${name}" is not there: ${path}`, {
    remedy: 'check the path of its mapping',
  })
}
