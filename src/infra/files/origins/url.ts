import type { Egress } from '../../egress/port.ts'
import { download } from './download.ts'
import type { Saved } from './save.ts'

/** Kept in the database afterwards, so no more than an upload could be. */
const maxBytes = 64 * 1024 * 1024
const maxMs = 60_000

const prefix = 'url:'
/** How a file that is still to be fetched stands in the state. */
export const urlPlace = (url: string): string => `${prefix}${url}`
export const urlOf = (localPath: string): string | null =>
  localPath.startsWith(prefix) ? localPath.slice(prefix.length) : null

/** The file at an address that a business named: public ones only, each redirect checked anew. */
export const fetchUrl = (egress: Egress, url: string, path: string, signal: AbortSignal): Promise<Saved> => {
  const shown = URL.canParse(url) ? new URL(url).host : 'the address'
  const refusal = (status: number): string =>
    `${shown} answered with status ${status}${status === 404 ? ' (not there)' : ''}; check the address, or upload the file`
  return download(egress, { url, shown, maxBytes, maxMs, refusal }, path, signal)
}
