import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { Sql } from '../../../state/ports.ts'
import type { OriginFile } from '../../../state/runtime-state.ts'
import type { StoragePlaces } from '../../config/storage.ts'
import type { Egress } from '../../egress/port.ts'
import { readBlob } from '../../runs/run-log.ts'
import { onDisk } from './disk.ts'
import { FileFault } from './fault.ts'
import { localPath } from './local.ts'
import { type Saved, tooLarge } from './save.ts'
import { fetchObject } from './storage.ts'
import { fetchUrl, urlOf, wholeUrl } from './url.ts'

/** Where the files of all runs of this process come from. */
export type Origins = { egress: Egress; storage: StoragePlaces; filesRoot: string | null }

const mostFileBytes = 256 * 1024 * 1024

type Reach = { sql: Sql; run: { tenant: string; run_id: string }; origins: Origins }

/** Where the bytes come from: over the network, out of our database, or they are on this machine (or nowhere). */
export const whence = ({ local_path, mapping }: Readonly<OriginFile>): 'elsewhere' | 'database' | 'here' => {
  if (local_path.startsWith('blob:')) return 'database'
  const isObject = mapping !== null && mapping.provider !== 'local'
  return isObject || urlOf(local_path) !== null ? 'elsewhere' : 'here'
}

/** Brings the bytes of a file to a path of this machine (`place` is a free one). Throws FileFault when there are none. */
export const openOrigin = async (
  { sql, run, origins }: Reach,
  file: Readonly<OriginFile>,
  place: string,
  signal: AbortSignal,
): Promise<Saved> => {
  const { tenant } = run
  const { local_path, mapping } = file
  if (whence(file) === 'database') {
    const hash = local_path.slice('blob:'.length)
    const bytes = await readBlob(sql, tenant, hash)
    if (!bytes) throw new FileFault('its bytes are gone; upload the file again')
    await onDisk(writeFile(place, bytes, { mode: 0o600 }))
    return { path: place, bytes: bytes.length, sha256: hash }
  }
  const url = await wholeUrl(sql, run, local_path)
  if (url !== null) return fetchUrl(origins.egress, url, place, signal)
  if (mapping === null) throw new FileFault('it has no bytes that can be read here; upload it')
  const { provider, path } = mapping
  if (provider === 'local') return hashOf(await localPath(origins.filesRoot, tenant, path, signal), signal)
  const options = { egress: origins.egress, places: origins.storage, maxBytes: mostFileBytes }
  return fetchObject(options, { provider, path }, tenant, place, signal)
}

const hashOf = async (path: string, signal: AbortSignal): Promise<Saved> => {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path, {
    highWaterMark: 1024 * 1024,
    signal,
  }) as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > mostFileBytes) throw tooLarge(mostFileBytes)
    hash.update(chunk)
  }
  return { path, bytes, sha256: hash.digest('hex') }
}
