import type { Sql } from '../../state/ports/sql.ts'
import type { TrustedKeyView, TrustRole } from './trust-schemas.ts'

/** The status of a row of `trusted_keys` at this moment of the database's clock. A revocation counts at any time. */
export const trustStatusSql = `CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
  WHEN valid_to <= clock_timestamp() THEN 'ended'
  WHEN valid_from > clock_timestamp() THEN 'not_yet_valid' ELSE 'valid' END`

/** Which keys are looked for: by the key id of a token, by its issuer, or both. */
export type TrustQuery = { business_id: string; role: TrustRole } & (
  | { kid: string; issuer?: string }
  | { issuer: string; kid?: undefined }
)

/** A key whose signatures count: take the issuer from here, never from the token. */
export type TrustedKey = Pick<TrustedKeyView, 'id' | 'issuer' | 'kid' | 'roles' | 'jwk'>

/** The keys that are valid; without any, why: the row that says so, or null where none is known. */
export type TrustAnswer =
  | { status: 'valid'; keys: [TrustedKey, ...TrustedKey[]] }
  | { status: 'unknown' | 'not_yet_valid' | 'ended' | 'revoked'; keys: []; key_id: string | null }

type Row = Omit<TrustedKey, 'jwk'> & { x: string; y: string; status: TrustedKeyView['status'] }

/**
 * The look-up of trusted keys, for every verifier of payments. One statement each time and no cache, so that a revocation
 * counts from the next statement on. Nothing is fetched: a key that is no row is unknown. `sql` acts for the business, or
 * across businesses.
 */
export const createTrust = (sql: Sql) => ({
  async find({ business_id, role, kid, issuer }: TrustQuery): Promise<TrustAnswer> {
    const named = Object.entries({ kid, issuer }).filter(([, value]) => value !== undefined)
    const { rows } = await sql.query<Row>(
      `SELECT key_id AS id, issuer, kid, roles, x, y, ${trustStatusSql} AS status FROM trusted_keys
       WHERE (tenant IS NULL OR tenant = $1) AND $2 = ANY(roles)
         AND ${named.map(([column], at) => `${column} = $${at + 3}`).join(' AND ')}
       ORDER BY created_at, key_id`,
      [business_id, role, ...named.map(([, value]) => value)],
    )
    const [first, ...others] = rows.filter(({ status }) => status === 'valid').map(toTrustedKey)
    if (first) return { status: 'valid', keys: [first, ...others] }
    for (const status of ['revoked', 'ended', 'not_yet_valid'] as const) {
      const row = rows.find((one) => one.status === status)
      if (row) return { status, keys: [], key_id: row.id }
    }
    return { status: 'unknown', keys: [], key_id: null }
  },
})

/** See `createTrust`. */
export type Trust = ReturnType<typeof createTrust>

const toTrustedKey = ({ x, y, status: _, ...key }: Row): TrustedKey => ({
  ...key,
  jwk: { kty: 'EC', crv: 'P-256', x, y },
})
