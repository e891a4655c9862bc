import { randomBytes } from 'node:crypto'
import type { Sql } from '../../../state/ports.ts'
import type { AdmittedRequest } from '../../../state/run-request.ts'
import { one } from '../../database/database.ts'
import type { Egress } from '../../egress/port.ts'
import { download } from './download.ts'
import { FileFault } from './fault.ts'
import type { Saved } from './save.ts'

/** Kept in the database afterwards, so no more than an upload could be. */
const maxBytes = 64 * 1024 * 1024
const maxMs = 60_000

const prefix = 'url:'
/**
 * How a file that is still to be fetched stands in the state, which is shown. Query, user and fragment may hold a key, so
 * a tag of this request stands for them; the whole address stays with the request, under `addresses`.
 */
export const urlPlace = (url: string): { local_path: string; hidden: boolean } => {
  const { origin, pathname, href } = new URL(url)
  const plain = origin + pathname
  if (plain === href) return { local_path: `${prefix}${url}`, hidden: false }
  return { local_path: `${prefix}${plain}?hidden=${randomBytes(8).toString('hex')}`, hidden: true }
}

export const urlOf = (localPath: string): string | null =>
  localPath.startsWith(prefix) ? localPath.slice(prefix.length) : null

/** The whole address of a place in the state, as one of the requests of the run's session has it. */
export const wholeUrl = async (
  sql: Sql,
  { tenant, run_id }: { tenant: string; run_id: string },
  localPath: string,
): Promise<string | null> => {
  const url = urlOf(localPath)
  const tag = /\?(hidden=[0-9a-f]{16})$/.exec(url ?? '')?.[1]
  if (url === null || tag === undefined) return url
  // told by the text: the operators of json refuse some documents
  const row = await one<{ request: AdmittedRequest }>(
    sql,
    `SELECT q.request FROM runs own JOIN runs r ON r.tenant = own.tenant AND r.session_id = own.session_id
     JOIN run_requests q ON q.tenant = r.tenant AND q.run_id = r.run_id
     WHERE own.tenant = $1 AND own.run_id = $2 AND strpos(q.request::text, $3) > 0 ORDER BY r.turn LIMIT 1`,
    [tenant, run_id, `?${tag}":"`],
  )
  const address = row?.request.addresses?.[localPath]
  if (address === undefined)
    throw new FileFault('its whole address is gone; give it again, or upload the file')
  return address
}

/** The file at an address that a business named: public ones only, each redirect checked anew. */
export const fetchUrl = (egress: Egress, url: string, path: string, signal: AbortSignal): Promise<Saved> => {
  const shown = URL.canParse(url) ? new URL(url).host : 'the address'
  const refusal = (status: number): string =>
    `${shown} answered with status ${status}${status === 404 ? ' (not there)' : ''}; check the address, or upload the file`
  return download(egress, { url, shown, maxBytes, maxMs, refusal }, path, signal)
}
