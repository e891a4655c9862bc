import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { businessPlaceholder, type StorageLocations } from '../../infra/config/storage.ts'
import { queryOne, type RunKey } from '../../infra/database/database.ts'
import type { Egress } from '../../infra/egress/egress-port.ts'
import { parseUrlPath } from '../../state/files/url-path.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { type AdmittedRequest, businessIdSchema } from '../../state/run-request.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import { openBlob } from '../blobs/blob-content.ts'
import { downloadUrl, measureBytes, type SavedFile, saveStream } from './download.ts'
import { FileError } from './file-error.ts'
import { downloadObject } from './object-storage.ts'

/** Where the files of all runs of this process come from. `filesRoot`: the folder of local mappings; null: none. */
export type FileOrigins = { egress: Egress; storage: StorageLocations; filesRoot: string | null }

const maxFileBytes = 256 * 1024 * 1024

/** Where the bytes of a file are: behind the network, in our database, or on this machine (or nowhere). */
export const locateBytes = ({
  local_path,
  mapping,
}: Readonly<OriginFile>): 'network' | 'database' | 'machine' => {
  if (local_path.startsWith('blob:')) return 'database'
  const isObject = mapping !== null && mapping.provider !== 'local'
  return isObject || parseUrlPath(local_path) !== null ? 'network' : 'machine'
}

/**
 * Brings the bytes of a file to this machine: to `targetPath`, but a local file stays where it is. Throws `FileError`
 * when there are none.
 */
export const openOrigin = async (
  { sql, run, origins }: { sql: Sql; run: RunKey; origins: FileOrigins },
  file: Readonly<OriginFile>,
  targetPath: string,
  signal: AbortSignal,
): Promise<SavedFile> => {
  const { tenant: business } = run
  const { local_path, mapping } = file
  if (locateBytes(file) === 'database') {
    const hash = local_path.slice('blob:'.length)
    const blob = await openBlob((work) => work(sql), run, hash)
    if (!blob) throw new FileError('its bytes are gone; upload the file again')
    return saveStream(blob.chunks, targetPath, maxFileBytes, signal)
  }
  const url = await readFullUrl(sql, run, local_path)
  if (url !== null) return downloadUrl(origins.egress, url, targetPath, signal)
  if (mapping === null) throw new FileError('it has no bytes that can be read here; upload it')
  const { provider, path } = mapping
  if (provider === 'local') {
    const localPath = await resolveLocalPath(origins.filesRoot, business, path, signal)
    const chunks = createReadStream(localPath, { highWaterMark: 1024 * 1024, signal })
    return { path: localPath, ...(await measureBytes(chunks, maxFileBytes)) }
  }
  const options = { egress: origins.egress, buckets: origins.storage, maxBytes: maxFileBytes }
  return downloadObject(options, { provider, path }, business, targetPath, signal)
}

/** The whole URL of a `url:` path. Where its query is hidden, a request of the run's session has it. */
const readFullUrl = async (
  sql: Sql,
  { tenant, run_id }: RunKey,
  localPath: string,
): Promise<string | null> => {
  const url = parseUrlPath(localPath)
  const tag = /\?(hidden=[0-9a-f]{16})$/.exec(url ?? '')?.[1]
  if (url === null || tag === undefined) return url
  // matches the text: the operators of json refuse some documents
  const row = await queryOne<{ request: AdmittedRequest }>(
    sql,
    `SELECT q.request FROM runs own JOIN runs r ON r.tenant = own.tenant AND r.session_id = own.session_id
     JOIN run_requests q ON q.tenant = r.tenant AND q.run_id = r.run_id
     WHERE own.tenant = $1 AND own.run_id = $2 AND strpos(q.request::text, $3) > 0 ORDER BY r.turn LIMIT 1`,
    [tenant, run_id, `?${tag}":"`],
  )
  const address = row?.request.addresses?.[localPath]
  if (address === undefined)
    throw new FileError('its whole address is gone; send it again, or upload the file')
  return address
}

/**
 * The file that a local mapping of a business names: inside its own folder where the root contains `{business}`, else
 * inside the shared one. Resolves links first, so that none leads out of that folder. Throws `FileError`.
 */
export const resolveLocalPath = async (
  root: string | null,
  business: string,
  path: string,
  signal: AbortSignal,
): Promise<string> => {
  if (root === null)
    throw new FileError(
      'it is a local file, and no folder is open to them; set MASON_FILES_ROOT to the folder that local mappings may point into',
    )
  try {
    const folder = await realpath(toBusinessRoot(root, business))
    const target = await realpath(join(folder, path))
    const inside = relative(folder, target)
    if (!inside.startsWith('..') && !isAbsolute(inside) && (await stat(target)).isFile()) return target
  } catch (error) {
    signal.throwIfAborted()
    const { code } = error as NodeJS.ErrnoException
    if (!absentCodes.has(code ?? '') && !(error instanceof TypeError)) throw error
  }
  throw new FileError(`it is not there: ${path}; check the path of its mapping`)
}

/** An invalid id leads nowhere: a valid one has no slashes and begins with a letter or a digit. */
const toBusinessRoot = (root: string, business: string): string =>
  root.replaceAll(businessPlaceholder, businessIdSchema.safeParse(business).success ? business : '\0')

const absentCodes = new Set([
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'EACCES',
  'ELOOP',
  'ENAMETOOLONG',
  'ERR_INVALID_ARG_VALUE',
])
