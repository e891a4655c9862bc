import { randomBytes } from 'node:crypto'
import { type Database, queryOne } from '../infra/database/database.ts'
import { ensureDatabaseId } from '../infra/database/database-id.ts'
import { sha256 } from '../infra/lib/ids.ts'
import { openOnce } from '../state/open-once.ts'

const lifetimeMs = { session: 8 * 3_600_000, code: 60_000 }
type Kind = keyof typeof lifetimeMs

/** Whose a session is: a token of a business or an operator by its id, or the admin token of the settings itself. */
export type SessionOwner = { token_id: string } | { admin_token: string }

/** What a session may do now, until when. */
export type SessionCaller = { expires_at: Date } & (
  | { kind: 'admin' }
  | { kind: 'operator'; token_id: string; label: string }
  | { kind: 'token'; token_id: string; label: string; business_id: string; roles: string[] }
)

type Row = {
  expires_at: Date
  token_id: string | null
  admin_proof: string | null
  operator: string | null
  business: { business_id: string; label: string; roles: string[] } | null
}

const columns = `s.token_id, s.admin_proof, s.expires_at, o.name AS operator, CASE WHEN t.token_id IS NOT NULL
  THEN json_build_object('business_id', t.tenant, 'label', t.label, 'roles', t.roles) END AS business`
const proveAdmin = (secret: string, adminToken: string): string => sha256(`${secret} ${adminToken}`)

/**
 * Who is signed in to the console. The secret of a session is 32 random bytes, and its hash alone is stored. What it may do is
 * read from its token at each call, so that a change or the end of the token is that of its sessions.
 */
export const createConsoleSessions = (database: Database) => {
  const readId = openOnce(() => ensureDatabaseId(database))

  /** Null where its token was revoked, or is no longer the admin token. */
  const toCaller = (secret: string, row: Row | null, adminToken: string | null): SessionCaller | null => {
    if (row === null) return null
    const { expires_at, token_id, operator, business, admin_proof } = row
    if (token_id === null) {
      const isAdmin = adminToken !== null && proveAdmin(secret, adminToken) === admin_proof
      return isAdmin ? { kind: 'admin', expires_at } : null
    }
    if (operator !== null) return { kind: 'operator', token_id, label: operator, expires_at }
    return business && { kind: 'token', token_id, ...business, expires_at }
  }
  const find = (secret: string, kind: Kind): Promise<Row | null> =>
    queryOne<Row>(
      database,
      `SELECT ${columns} FROM console_sessions s LEFT JOIN tokens t ON t.token_id = s.token_id AND t.revoked_at IS NULL
       LEFT JOIN operators o ON o.operator_id = s.token_id AND o.revoked_at IS NULL
       WHERE s.secret_hash = $1 AND s.kind = $2 AND s.expires_at > clock_timestamp()`,
      [sha256(secret), kind],
    )
  const create = async (kind: Kind, owner: SessionOwner): Promise<{ secret: string; expires_at: Date }> => {
    await database.query('DELETE FROM console_sessions WHERE expires_at <= clock_timestamp()')
    const secret = randomBytes(32).toString('base64url')
    const row = await queryOne<{ expires_at: Date }>(
      database,
      `INSERT INTO console_sessions (secret_hash, kind, token_id, admin_proof, expires_at)
       VALUES ($1, $2, $3, $4, clock_timestamp() + $5::int * interval '1 millisecond') RETURNING expires_at`,
      [
        sha256(secret),
        kind,
        'token_id' in owner ? owner.token_id : null,
        'admin_token' in owner ? proveAdmin(secret, owner.admin_token) : null,
        lifetimeMs[kind],
      ],
    )
    return { secret, expires_at: (row as { expires_at: Date }).expires_at }
  }

  return {
    /** A session of 8 hours, or a code of a minute. */
    create,
    /** Who is signed in by this secret. Null: the session has ended, or its token has. */
    find: async (secret: string, adminToken: string | null): Promise<SessionCaller | null> =>
      toCaller(secret, await find(secret, 'session'), adminToken),
    /** Uses a code up. Null: it was used, has expired, or is none. */
    async useCode(code: string, adminToken: string | null): Promise<SessionCaller | null> {
      const caller = toCaller(code, await find(code, 'code'), adminToken)
      return (await remove(code, 'code')) ? caller : null
    },
    /** Ends a session everywhere at once. */
    end: (secret: string): Promise<boolean> => remove(secret, 'session'),
    /** The name of the cookie without its prefix: two Masons of one host have two. */
    async cookieName(): Promise<string> {
      return `mason-${sha256(await readId()).slice(0, 8)}`
    },
  }

  async function remove(secret: string, kind: Kind): Promise<boolean> {
    const row = await queryOne(
      database,
      'DELETE FROM console_sessions WHERE secret_hash = $1 AND kind = $2 RETURNING secret_hash',
      [sha256(secret), kind],
    )
    return row !== null
  }
}

/** See `createConsoleSessions`. */
export type ConsoleSessions = ReturnType<typeof createConsoleSessions>
