import { queryOne } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
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

type Row = Omit<TrustedKey, 'jwk'> & { nth: number; x: string; y: string; status: TrustedKeyView['status'] }

/** By the index of the key id, or that of the issuer. */
const findStatement = `
  SELECT nth, key_id AS id, issuer, kid, roles, x, y, ${trustStatusSql} AS status
  FROM json_to_recordset($1::json) AS q (nth int, for_business text, for_role text, for_kid text, for_issuer text)
  CROSS JOIN LATERAL (
    SELECT * FROM trusted_keys WHERE kid = for_kid AND (for_issuer IS NULL OR issuer = for_issuer)
    UNION ALL SELECT * FROM trusted_keys WHERE for_kid IS NULL AND issuer = for_issuer
  ) k WHERE (tenant IS NULL OR tenant = for_business) AND for_role = ANY(roles)
  ORDER BY created_at, key_id`

const toAnswer = (rows: readonly Row[]): TrustAnswer => {
  const [first, ...others] = rows.filter(({ status }) => status === 'valid').map(toTrustedKey)
  if (first) return { status: 'valid', keys: [first, ...others] }
  for (const status of ['revoked', 'ended', 'not_yet_valid'] as const) {
    const row = rows.find((one) => one.status === status)
    if (row) return { status, keys: [], key_id: row.id }
  }
  return { status: 'unknown', keys: [], key_id: null }
}

/**
 * The look-up of trusted keys, for every verifier of payments. No cache, so that a revocation counts from the next statement on:
 * a statement answers what was asked at once before it was sent. Nothing is fetched: a key that is no row is unknown. `sql` acts
 * for the business, or across businesses.
 */
export const createTrust = (sql: Sql) => {
  let asked: TrustQuery[] = []
  let answering: Promise<Row[]> | undefined

  const answer = async (): Promise<Row[]> => {
    // all payments that are verified in this turn of the event loop ask by one statement
    await new Promise<void>((resolve) => process.nextTick(resolve))
    const queries = asked.map(({ business_id, role, kid, issuer }, nth) => ({
      nth,
      for_business: business_id,
      for_role: role,
      for_kid: kid,
      for_issuer: issuer,
    }))
    asked = []
    answering = undefined
    return (await sql.query<Row>(findStatement, [JSON.stringify(queries)])).rows
  }

  return {
    async find(query: TrustQuery): Promise<TrustAnswer> {
      const at = asked.push(query) - 1
      answering ??= answer()
      return toAnswer((await answering).filter(({ nth }) => nth === at))
    },
    /** Whether the demo profile is on for the business: it has a demo provider, and no provider is active that moves money. */
    async acceptsPlaceholders(businessId: string): Promise<boolean> {
      const row = await queryOne<{ accepts: boolean }>(sql, 'SELECT accepts_placeholders($1) AS accepts', [
        businessId,
      ])
      return row?.accepts === true
    },
  }
}

/** See `createTrust`. */
export type Trust = ReturnType<typeof createTrust>

const toTrustedKey = ({ x, y, status: _, nth: __, ...key }: Row): TrustedKey => ({
  ...key,
  jwk: { kty: 'EC', crv: 'P-256', x, y },
})
