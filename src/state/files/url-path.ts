import { randomBytes } from 'node:crypto'

const prefix = 'url:'
/**
 * The `local_path` of a file that is not downloaded yet. The state is visible, and query, user and fragment may contain a
 * key: a random tag replaces them. The whole address stays with the request, under `addresses`.
 */
export const toUrlPath = (url: string): { local_path: string; hidden: boolean } => {
  const { origin, pathname, href } = new URL(url)
  const plain = origin + pathname
  if (plain === href) return { local_path: `${prefix}${url}`, hidden: false }
  return { local_path: `${prefix}${plain}?hidden=${randomBytes(8).toString('hex')}`, hidden: true }
}

/** The address that a URL path stands for; null for other paths. */
export const parseUrlPath = (localPath: string): string | null =>
  localPath.startsWith(prefix) ? localPath.slice(prefix.length) : null
