import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import pg from 'pg'
import { type MasonError, toSettingsError } from '../../state/errors.ts'
import { describeUnreachable } from './database-errors.ts'
import type { ProcessLogin } from './login-roles.ts'
import type { MigrationTarget } from './migration.ts'
import { insufficientPrivilege } from './migrations.ts'

/** Gives what Mason made to a role that no process logs in as. What an extension brought stays where it is. */
const reassignStatement = `DO $$
DECLARE
  item text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mason_owner') THEN
    CREATE ROLE mason_owner NOLOGIN NOBYPASSRLS;
  END IF;
  IF NOT pg_has_role(current_user, 'mason_owner', CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
    EXECUTE format('GRANT mason_owner TO %I', current_user);
  END IF;
  -- as the owner, the function that ends waits writes runs of every business
  IF NOT pg_has_role('mason_owner', 'mason_worker', 'USAGE') THEN
    GRANT mason_worker TO mason_owner;
  END IF;
  FOR item IN
    SELECT format('SCHEMA %I', nspname) FROM pg_namespace WHERE nspname = 'mason' AND nspowner <> 'mason_owner'::regrole
    UNION ALL
    SELECT format('TABLE %s', oid::regclass) FROM pg_class
    WHERE relnamespace = 'mason'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND relowner <> 'mason_owner'::regrole
    UNION ALL
    SELECT format('FUNCTION %s', oid::regprocedure) FROM pg_proc p
    WHERE pronamespace = 'mason'::regnamespace AND proowner <> 'mason_owner'::regrole
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
  LOOP
    EXECUTE format('ALTER %s OWNER TO mason_owner', item);
  END LOOP;
END $$`

/**
 * Creates the logins and takes from them what a process must not have; also those of an existing database. Safe to repeat;
 * the caller holds the lock of migrations. Roles belong to the whole server, so another database may make the same ones now.
 */
export const ensureLogins = async (
  target: MigrationTarget,
  logins: readonly ProcessLogin[],
): Promise<void> => {
  try {
    await retryRaces(() => target.run(reassignStatement))
    for (const login of logins) await retryRaces(() => ensureLogin(target, login))
  } catch (error) {
    if ((error as { code?: unknown }).code !== insufficientPrivilege) throw error
    throw toSettingsError(
      `the user of this migration may not create logins: ${(error as Error).message}`,
      'set MASON_MIGRATE_URL to the user that created the tables, with CREATEROLE, or to a superuser',
      error,
    )
  }
}

/** duplicate_object, unique_violation, and "tuple concurrently updated". */
const raceCodes: readonly unknown[] = ['42710', '23505', 'XX000']

const retryRaces = async (work: () => Promise<void>, tries = 5): Promise<void> => {
  try {
    await work()
  } catch (error) {
    if (tries === 1 || !raceCodes.includes((error as { code?: unknown }).code)) throw error
    await retryRaces(work, tries - 1)
  }
}

type LoginFacts = {
  can_login: boolean
  is_strong: boolean
  owns: boolean
  creates: boolean
  others: string[]
  missing: string[]
}

const factsStatement = `SELECT rolcanlogin AS can_login,
  rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication AS is_strong,
  EXISTS (SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = r.oid AND deptype = 'o') AS owns,
  has_schema_privilege(r.oid, 'public', 'CREATE') OR has_database_privilege(r.oid, current_database(), 'CREATE') AS creates,
  ARRAY(SELECT o.rolname::text FROM pg_roles o
    WHERE o.oid <> r.oid AND NOT o.rolname = ANY($2) AND pg_has_role(r.oid, o.oid, 'MEMBER')) AS others,
  ARRAY(SELECT wanted FROM unnest($2::text[]) AS wanted WHERE NOT pg_has_role(r.oid, wanted, 'MEMBER')) AS missing
  FROM pg_roles r WHERE rolname = $1`

const ensureLogin = async (target: MigrationTarget, login: ProcessLogin): Promise<void> => {
  const { setting, url } = login
  const { username, password } = new URL(url)
  const name = decodeURIComponent(username)
  if (name === '')
    throw refuseLogin(
      setting,
      'names no user',
      'put the name of the login before the host: user:password@host',
    )
  const roles = Object.values(login.roles)
  const readFacts = async () =>
    (await target.query(factsStatement, [name, roles]))[0] as LoginFacts | undefined
  const role = pg.escapeIdentifier(name)
  const toPasswordSql = (): string =>
    password === '' ? '' : ` PASSWORD '${toScramVerifier(decodeURIComponent(password))}'`
  let facts = await readFacts()
  // NOINHERIT: the login itself has no rights, only the role that a connection asks for
  if (!facts) await target.run(`CREATE ROLE ${role} LOGIN NOINHERIT${toPasswordSql()}`)
  facts = (await readFacts()) as LoginFacts
  assertPowerless(setting, name, facts)
  if (!facts.can_login) await target.run(`ALTER ROLE ${role} LOGIN`)
  for (const one of facts.missing) await target.run(`GRANT ${one} TO ${role}`)
  const refusal = await connectAs(url)
  if (refusal && isWrongPassword(refusal) && password !== '') {
    await target.run(`ALTER ROLE ${role}${toPasswordSql()}`)
    assertConnected(setting, url, await connectAs(url))
  } else assertConnected(setting, url, refusal)
}

const isWrongPassword = ({ code }: { code?: unknown }): boolean => code === '28P01' || code === '28000'

/** The error of a connection with this address, or null. */
const connectAs = async (url: string): Promise<(Error & { code?: unknown }) | null> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 })
  client.on('error', () => {})
  try {
    await client.connect()
    return null
  } catch (error) {
    return error as Error
  } finally {
    await client.end().catch(() => {})
  }
}

const assertConnected = (setting: string, url: string, error: Error | null): void => {
  if (!error) return
  const { problem, remedy } = describeUnreachable(url, error, setting)
  throw toSettingsError(problem, remedy, error)
}

const refuseLogin = (setting: string, problem: string, remedy: string): MasonError =>
  toSettingsError(`${setting} ${problem}`, remedy)

const anotherName = 'or use another name, and `mason migrate` creates that login'

const assertPowerless = (
  setting: string,
  name: string,
  { is_strong, owns, creates, others }: LoginFacts,
): void => {
  const login = pg.escapeIdentifier(name)
  if (is_strong)
    throw refuseLogin(
      setting,
      `names ${login}, which may do more than a process needs`,
      `run: ALTER ROLE ${login} NOSUPERUSER NOCREATEROLE NOCREATEDB NOBYPASSRLS NOREPLICATION; ${anotherName}`,
    )
  if (others.length > 0)
    throw refuseLogin(
      setting,
      `names ${login}, which can become ${others.join(', ')}`,
      `run: REVOKE ${others.map((role) => pg.escapeIdentifier(role)).join(', ')} FROM ${login}; ${anotherName}`,
    )
  if (owns)
    throw refuseLogin(
      setting,
      `names ${login}, which owns tables or a database`,
      `give them to another role, ${anotherName}`,
    )
  if (creates)
    throw refuseLogin(
      setting,
      `names ${login}, which may create tables`,
      'run as a superuser: REVOKE CREATE ON SCHEMA public FROM PUBLIC',
    )
}

/** What PostgreSQL stores of a password (RFC 5803), so that the password itself reaches neither the server nor its log. */
export const toScramVerifier = (password: string, salt = randomBytes(16)): string => {
  const iterations = 4096
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, iterations, 32, 'sha256')
  const sign = (text: string): Buffer => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(sign('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${sign('Server Key').toString('base64')}`
}
