import type { Config } from '../../infra/config/config.ts'
import { stripCredentials } from '../../infra/lib/strip-credentials.ts'
import { type Models, rulesOnly } from '../../state/ports/models.ts'
import type { Terminal } from './terminal.ts'

/** The database of the settings in one phrase, without secrets. */
export const describeDatabase = ({ database }: Config): string => {
  if (database.kind === 'postgres') return `PostgreSQL at ${stripCredentials(database.url)}`
  return database.kind === 'memory' ? 'in memory' : `embedded in ${database.dataDir}, for this one process`
}

/** The queue of the settings in one phrase, without secrets. */
export const describeQueue = ({ redisUrl, queuePrefix }: Config): string =>
  redisUrl ? `Redis at ${stripCredentials(redisUrl)}, prefix ${queuePrefix}` : 'within the process'

/** The default model in one phrase. */
export const describeModel = (models: Pick<Models, 'describe'>): string => {
  const { name, capabilities, base_url } = models.describe()
  return capabilities.includes(rulesOnly)
    ? 'built-in offline model: rules, no AI; set OPENAI_API_KEY or OPENAI_BASE_URL for a real model'
    : `${name} at ${base_url ?? 'its vendor'}`
}

/** A title with rows of names and texts below it. */
export const formatBanner = (
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
