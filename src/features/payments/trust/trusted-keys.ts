import { randomBytes } from 'node:crypto'
import { type Database, hasRow, queryOne } from '../../../infra/database/database.ts'
import { readPage } from '../../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../../infra/database/row-times.ts'
import { changeResources } from '../../../infra/resources/resource-store.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { createFieldsError, type FieldError } from '../../../state/resource-schema.ts'
import type { Page } from '../../../state/run-view.ts'
import { trustStatusSql } from './trust.ts'
import type { TrustedKeyInput, TrustedKeyView } from './trust-schemas.ts'

type Row = Dated<Omit<TrustedKeyView, 'jwk' | 'valid_from' | 'valid_to'>> & {
  x: string
  y: string
  valid_from: Date
  valid_to: Date | null
}

const columns = `key_id AS id, tenant AS business_id, issuer, kid, roles, x, y, ${trustStatusSql} AS status, valid_from, valid_to,
  revoked_at, created_at`

const toView = ({ x, y, ...row }: Row): TrustedKeyView => ({
  ...toIsoTimes(row),
  jwk: { kty: 'EC', crv: 'P-256', x, y },
})

/** The most keys of one business, and of those for all, that have not ended. */
export const maxTrustedKeys = 1000

/** The keys of issuers that businesses trust. They are added and ended, and never change. Null: there is none of this id. */
export const createTrustedKeys = (database: Database) => {
  const get = async (id: string): Promise<TrustedKeyView | null> => {
    const row = await queryOne<Row>(database, `SELECT ${columns} FROM trusted_keys WHERE key_id = $1`, [id])
    return row && toView(row)
  }
  /** One after the other, so that no key is added while it is being revoked, or twice. */
  const write = <T>(work: (sql: Sql) => Promise<T>): Promise<T> =>
    changeResources({ database, lock: 'mason.trust' }, work)

  return {
    get,
    /** Throws `already_exists` for a kid of the issuer that the business knows, `invalid_request` with the fields. */
    async create(input: TrustedKeyInput): Promise<TrustedKeyView> {
      const id = `trk_${randomBytes(12).toString('hex')}`
      const { business_id, issuer, kid, roles, jwk } = input
      const [from, to] = [toDate(input.valid_from), toDate(input.valid_to)]
      await write(async (sql) => {
        await checkKey(sql, input, from, to)
        await sql.query(
          `INSERT INTO trusted_keys (key_id, tenant, issuer, kid, roles, x, y, valid_from, valid_to)
           VALUES ($1, $2, $3, $4, ARRAY(SELECT json_array_elements_text($5::json)), $6, $7,
             COALESCE($8::timestamptz, clock_timestamp()), $9)`,
          [id, business_id, issuer, kid, JSON.stringify([...new Set(roles)]), jwk.x, jwk.y, from, to],
        )
      })
      return (await get(id)) as TrustedKeyView
    },
    /** Ends a key now. One that has ended stays as it is. */
    async end(id: string): Promise<TrustedKeyView | null> {
      await write((sql) =>
        sql.query(
          `UPDATE trusted_keys SET valid_to = clock_timestamp()
           WHERE key_id = $1 AND (valid_to IS NULL OR valid_to > clock_timestamp())`,
          [id],
        ),
      )
      return get(id)
    },
    /** Revokes a key now: every row that has it, whichever business trusts it. What is revoked stays as it is. */
    async revoke(id: string): Promise<TrustedKeyView | null> {
      await write((sql) =>
        sql.query(
          `UPDATE trusted_keys SET revoked_at = clock_timestamp()
           WHERE x = (SELECT x FROM trusted_keys WHERE key_id = $1) AND revoked_at IS NULL`,
          [id],
        ),
      )
      return get(id)
    },
    list(filter: {
      business_id?: string
      issuer?: string
      limit: number
      cursor?: string
    }): Promise<Page<TrustedKeyView>> {
      const list = {
        select: columns,
        from: 'trusted_keys',
        where: '($1::text IS NULL OR tenant IS NULL OR tenant = $1) AND ($2::text IS NULL OR issuer = $2)',
        values: [filter.business_id ?? null, filter.issuer ?? null],
        at: 'created_at',
        id: 'key_id',
      }
      return readPage<Row, TrustedKeyView>(database, list, filter, toView)
    },
  }
}

/** See `createTrustedKeys`. */
export type TrustedKeys = ReturnType<typeof createTrustedKeys>

/** As the driver writes it: PostgreSQL does not read every offset that ISO 8601 has. */
const toDate = (time: string | null | undefined): Date | null => (time ? new Date(time) : null)

const checkKey = async (
  sql: Sql,
  { business_id, issuer, kid, jwk }: TrustedKeyInput,
  from: Date | null,
  to: Date | null,
): Promise<void> => {
  const facts = await queryOne<{ knows: boolean; revoked: boolean; empty: boolean; count: number }>(
    sql,
    `SELECT $1::text IS NULL OR EXISTS (SELECT FROM businesses WHERE tenant = $1) AS knows,
       EXISTS (SELECT FROM trusted_keys WHERE x = $2 AND revoked_at IS NOT NULL) AS revoked,
       COALESCE($4::timestamptz <= COALESCE($3::timestamptz, clock_timestamp()), false) AS empty,
       (SELECT count(*)::int FROM trusted_keys WHERE tenant IS NOT DISTINCT FROM $1 AND revoked_at IS NULL
         AND (valid_to IS NULL OR valid_to > clock_timestamp())) AS count`,
    [business_id, jwk.x, from, to],
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
}
