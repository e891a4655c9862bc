import { type Database, hasRow, queryOne } from '../../../infra/database/database.ts'
import { changeResources, createResourceStore } from '../../../infra/resources/resource-store.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { createFieldsError, type FieldError, type ResourceSchemas } from '../../../state/resource-schema.ts'
import { trustStatusSql } from './trust.ts'
import type { TrustedKeyInput, TrustedKeyView } from './trust-schemas.ts'

type Row = Pick<TrustedKeyView, 'id' | 'status'> & { x: string; y: string }

/** The most keys of one business, and of those for all, that have not ended. */
export const maxTrustedKeys = 1000

/** The keys of issuers that businesses trust. They are added and ended, and never change. Null: there is none of this id. */
export const createTrustedKeys = (database: Database) => {
  // one after the other, so that no key is added while it is being revoked, or twice
  const context = { database, lock: 'mason.trust' }
  const store = createResourceStore<Row, ResourceSchemas, TrustedKeyInput, never, TrustedKeyView>(context, {
    name: 'trusted key',
    prefix: 'trk',
    table: 'trusted_keys',
    idColumn: 'key_id',
    fields: ['issuer', 'kid', 'roles'],
    fixed: { business_id: 'tenant' },
    filters: {
      business_id: '(t.tenant IS NULL OR t.tenant = $in_business_id)',
      issuer: 't.issuer = $in_issuer',
    },
    readOnly: ['valid_from', 'valid_to', 'revoked_at'],
    times: ['created_at'],
    columns: `t.x, t.y, ${trustStatusSql} AS status`,
    toView: ({ x, y, status }) => ({ jwk: { kty: 'EC', crv: 'P-256', x, y }, status }),
    findErrors: findKeyErrors,
    toValues: ({ roles, jwk: { x, y }, valid_from, valid_to }) => ({
      roles: [...new Set(roles)],
      x,
      y,
      ...(valid_from !== undefined && { valid_from: toDate(valid_from) }),
      valid_to: toDate(valid_to),
    }),
  })
  const write = async (id: string, statement: string): Promise<TrustedKeyView | null> => {
    await changeResources(context, (sql) => sql.query(statement, [id]))
    return store.get({}, id)
  }

  return {
    ...store,
    /** Ends a key now. One that has ended stays as it is. */
    end: (id: string) =>
      write(
        id,
        `UPDATE trusted_keys SET valid_to = clock_timestamp()
         WHERE key_id = $1 AND (valid_to IS NULL OR valid_to > clock_timestamp())`,
      ),
    /** Revokes a key now: every row that has it, whichever business trusts it. What is revoked stays as it is. */
    revoke: (id: string) =>
      write(
        id,
        `UPDATE trusted_keys SET revoked_at = clock_timestamp()
         WHERE x = (SELECT x FROM trusted_keys WHERE key_id = $1) AND revoked_at IS NULL`,
      ),
  }
}

/** As the driver writes it: PostgreSQL does not read every offset that ISO 8601 has. */
const toDate = (time: string | null | undefined): Date | null => (time ? new Date(time) : null)

/** Throws `already_exists` for a kid of the issuer that the business knows. */
const findKeyErrors = async (
  sql: Sql,
  { business_id, issuer, kid, jwk, valid_from, valid_to }: TrustedKeyInput,
): Promise<FieldError[]> => {
  const facts = await queryOne<{ knows: boolean; revoked: boolean; empty: boolean; count: number }>(
    sql,
    `SELECT $1::text IS NULL OR EXISTS (SELECT FROM businesses WHERE tenant = $1) AS knows,
       EXISTS (SELECT FROM trusted_keys WHERE x = $2 AND revoked_at IS NOT NULL) AS revoked,
       COALESCE($4::timestamptz <= COALESCE($3::timestamptz, clock_timestamp()), false) AS empty,
       (SELECT count(*)::int FROM trusted_keys WHERE tenant IS NOT DISTINCT FROM $1 AND revoked_at IS NULL
         AND (valid_to IS NULL OR valid_to > clock_timestamp())) AS count`,
    [business_id, jwk.x, toDate(valid_from), toDate(valid_to)],
  )
  const errors: FieldError[] = []
  const report = (pointer: string, detail: string) => errors.push({ pointer, detail })
  if (!facts?.knows)
    report('/business_id', `there is no business "${business_id}"; POST /admin/v1/businesses creates it`)
  if (facts?.revoked) report('/jwk', 'this key was revoked; ask the issuer for a new one')
  if (facts?.empty) report('/valid_to', 'is not after valid_from; leave it out for a key without an end')
  if ((facts?.count ?? 0) >= maxTrustedKeys)
    report(
      '/business_id',
      `has ${maxTrustedKeys} keys, which is the limit; end those that are no longer used`,
    )
  if (errors.length > 0) throw createFieldsError(...errors)
  const isTaken = await hasRow(
    sql,
    `SELECT FROM trusted_keys WHERE kid = $3 AND issuer = $2 AND (tenant IS NULL OR $1::text IS NULL OR tenant = $1)`,
    [business_id, issuer, kid],
  )
  if (isTaken)
    throw new MasonError('already_exists', `there is a key "${kid}" of the issuer "${issuer}" already`, {
      remedy:
        'a key never changes, also one that has ended: add the new key under a kid of its own; GET /admin/v1/trust?issuer= lists the keys',
    })
  return []
}
