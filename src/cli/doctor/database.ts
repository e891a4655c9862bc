import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../infra/config.ts'
import {
  switchOn,
  type VectorFacts,
  vectorColumns,
  vectorFault,
} from '../../infra/database/vector-extension.ts'
import { packagePath } from '../../infra/package-path.ts'
import { isMasonError } from '../../state/errors.ts'
import { shownAddress } from '../banner.ts'
import type { Check, Finding } from '../doctor.ts'

/** Whether the database is there, and as the migrations want it. */
export const checkDatabase: Check = async (config, signal) => {
  const { database } = config
  switch (database.kind) {
    case 'postgres':
      return checkPostgres(database.url, signal)
    case 'embedded':
      return [await checkEmbedded(database.dataDir)]
    case 'memory':
      return [{ ok: true, text: 'in memory' }]
    default:
      throw database satisfies never
  }
}

/** Whether there is one to look into; embedded it is made at the first start. */
export const hasDatabase = ({ database }: Config): boolean =>
  database.kind !== 'embedded' || existsSync(join(database.dataDir, 'pgdata'))

const checkEmbedded = async (dataDir: string): Promise<Finding> => {
  if (!existsSync(join(dataDir, 'pgdata')))
    return { ok: true, text: `embedded; made in ${dataDir} at the first start` }
  const { openEmbedded } = await import('../../infra/database/embedded.ts')
  try {
    await (await openEmbedded({ dataDir })).close()
    return { ok: true, text: `embedded in ${dataDir}, opens and is up to date` }
  } catch (error) {
    if (isMasonError(error, 'data_dir_locked')) return { ok: true, text: `embedded; ${error.message}` }
    return {
      ok: false,
      text: `embedded in ${dataDir}, does not open: ${(error as Error).message}`,
      remedy: `put ${dataDir} back from a backup, or move it away to start anew`,
    }
  }
}

const connectMs = 3_000

type Facts = VectorFacts & {
  version: string
  me: string
  has_migrations: boolean
  missing_roles: string[]
}

const factsQuery = `SELECT current_setting('server_version') AS version, current_user AS me,
  ${vectorColumns},
  to_regclass('mason.migrations') IS NOT NULL AS has_migrations,
  ARRAY(SELECT wanted FROM unnest(ARRAY['mason_api', 'mason_worker']) AS wanted
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted AND pg_has_role(current_user, oid, 'MEMBER'))) AS missing_roles`

const checkPostgres = async (url: string, signal: AbortSignal): Promise<Finding[]> => {
  const { default: pg } = await import('pg')
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    query_timeout: connectMs,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    signal.throwIfAborted()
    const { rows } = await client.query<Facts>(factsQuery)
    const facts = rows[0] as Facts
    const applied = facts.has_migrations
      ? (await client.query<{ name: string }>('SELECT name FROM mason.migrations')).rows.map(
          ({ name }) => name,
        )
      : []
    return [
      { ok: true, text: `PostgreSQL ${facts.version.split(' ')[0]} at ${shownAddress(url)} as ${facts.me}` },
      vectorFinding(facts),
      ...(await migrationFindings(applied, facts)),
    ]
  } catch (error) {
    return [unreachable(url, error)]
  } finally {
    await client.end().catch(() => {})
  }
}

const unreachable = (url: string, error: unknown): Finding => {
  const { code, message } = error as { code?: string; message: string }
  const remedies: Record<string, string> = {
    '28P01': 'correct user or password in DATABASE_URL',
    '28000': "correct the user in DATABASE_URL, or allow it in the server's pg_hba.conf",
    '3D000': 'create the database, or correct its name in DATABASE_URL',
    ECONNREFUSED: 'start PostgreSQL there, or correct host and port in DATABASE_URL',
    ENOTFOUND: 'correct the host in DATABASE_URL',
  }
  return {
    ok: false,
    text: `PostgreSQL at ${shownAddress(url)} cannot be used: ${message || code}`,
    remedy:
      remedies[code ?? ''] ?? 'check that DATABASE_URL is right and the server can be reached from here',
  }
}

const vectorFinding = (facts: VectorFacts): Finding => {
  const fault = vectorFault(facts)
  if (fault) return { ok: false, ...fault }
  if (facts.vector !== null) return { ok: true, text: `pgvector ${facts.vector}` }
  return {
    ok: false,
    text: `pgvector ${facts.vector_available} is there but not switched on`,
    remedy: switchOn,
  }
}

const migrationFindings = async (
  applied: readonly string[],
  { missing_roles, me }: Facts,
): Promise<Finding[]> => {
  const wanted = (await readdir(packagePath('migrations'))).filter((name) => name.endsWith('.sql')).sort()
  const missing = wanted.filter((name) => !applied.includes(name))
  if (missing.length > 0)
    return [
      { ok: false, text: `migrations are missing: ${missing.join(', ')}`, remedy: 'run `mason migrate`' },
    ]
  const migrated: Finding = { ok: true, text: `${wanted.length} of ${wanted.length} migrations applied` }
  if (missing_roles.length === 0) return [migrated, { ok: true, text: 'roles mason_api and mason_worker' }]
  return [
    migrated,
    {
      ok: false,
      text: `${me} is no member of ${missing_roles.join(' and ')}`,
      remedy: `as a superuser: GRANT ${missing_roles.join(', ')} TO ${me}`,
    },
  ]
}
