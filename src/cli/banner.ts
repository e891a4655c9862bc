import type { Config } from '../infra/config.ts'
import type { Models } from '../state/ports.ts'
import type { Terminal } from './terminal.ts'

/** An address without user name and password. */
export const shownAddress = (url: string): string => {
  const { hostname, port, pathname } = new URL(url)
  return `${hostname || 'local socket'}${port ? `:${port}` : ''}${pathname === '/' ? '' : pathname}`
}

export const databaseText = ({ database }: Config): string => {
  switch (database.kind) {
    case 'postgres':
      return `PostgreSQL at ${shownAddress(database.url)}`
    case 'embedded':
      return `embedded in ${database.dataDir}, for this one process`
    case 'memory':
      return 'in memory'
    default:
      throw database satisfies never
  }
}

export const queueText = ({ redisUrl }: Config): string =>
  redisUrl ? `Redis at ${shownAddress(redisUrl)}` : 'in the same database'

export const modelText = (models: Pick<Models, 'describe'>): string => {
  const { name, offline, base_url } = models.describe()
  return offline
    ? 'the built-in offline model: rules, no AI; set OPENAI_API_KEY or OPENAI_BASE_URL for a real one'
    : `${name} at ${base_url ?? 'its vendor'}`
}

/** A title and rows of names and texts below it. */
export const banner = (
  title: string,
  rows: readonly (readonly [string, string])[],
  { colors }: Terminal,
): string => {
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    colors.bold(title),
    ...rows.map(([name, text]) => `  ${colors.dim(name.padEnd(width))}  ${text}`),
    '',
  ].join('\n')
}
