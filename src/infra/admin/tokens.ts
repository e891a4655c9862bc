import { randomBytes } from 'node:crypto'
import type { NewToken, TokenChange, TokenInput, TokenView } from '../../state/admin.ts'
import type { Clock } from '../../state/ports.ts'
import type { Page } from '../../state/run-view.ts'
import { type Database, one } from '../database/database.ts'
import { sha256 } from '../ids.ts'
import { ensureBusiness } from '../runs/admit.ts'
import { pageOf, readCursor } from '../runs/page.ts'

type Row = Omit<TokenView, 'created_at'> & { created_at: Date; at: string }

const columns = 'token_id AS id, tenant AS business_id, label, roles, created_at, created_at::text AS at'

const viewOf = ({ id, business_id, label, roles, created_at }: Row): TokenView => ({
  id,
  business_id,
  label,
  roles,
  created_at: created_at.toISOString(),
})

/** Contract: what an admin changes takes effect on every process within 2 s. */
const rememberedMs = 1000
const maxRemembered = 10_000

type Caller = { business_id: string; roles: string[] }

/**
 * API tokens of businesses: stored as a hash, shown once. Who a token is, is remembered for a second, so that a flood of
 * requests costs one look; what changes here takes effect here at once.
 */
export const createTokens = (database: Database, clock: Clock) => {
  const remembered = new Map<string, { at: number; caller: Promise<Caller | null> }>()

  const look = (hash: string): Promise<Caller | null> => {
    if (remembered.size >= maxRemembered) remembered.clear()
    const caller = one<Caller>(
      database,
      'SELECT tenant AS business_id, roles FROM tokens WHERE token_hash = $1 AND revoked_at IS NULL',
      [hash],
    )
    const looked = { at: clock.monotonicMs(), caller }
    remembered.set(hash, looked)
    const forget = (): void => {
      if (remembered.get(hash) === looked) remembered.delete(hash)
    }
    caller.then((known) => known ?? forget(), forget)
    return caller
  }

  return {
    async create({ business_id, label, roles }: TokenInput): Promise<NewToken> {
      await ensureBusiness(database, business_id)
      const token = `mason_${randomBytes(32).toString('base64url')}`
      const id = `tok_${randomBytes(12).toString('hex')}`
      const row = await one<Row>(
        database,
        `INSERT INTO tokens (tenant, token_id, token_hash, label, roles)
       VALUES ($1, $2, $3, $4, ARRAY(SELECT json_array_elements_text($5::json))) RETURNING ${columns}`,
        [business_id, id, sha256(token), label, JSON.stringify(roles)],
      )
      return { ...viewOf(row as Row), token }
    },
    async get(id: string): Promise<TokenView | null> {
      const row = await one<Row>(
        database,
        `SELECT ${columns} FROM tokens WHERE token_id = $1 AND revoked_at IS NULL`,
        [id],
      )
      return row && viewOf(row)
    },
    async change(id: string, { label, roles }: TokenChange): Promise<TokenView | null> {
      const row = await one<Row>(
        database,
        `UPDATE tokens SET label = COALESCE($2, label),
         roles = CASE WHEN $3::json IS NULL THEN roles ELSE ARRAY(SELECT json_array_elements_text($3::json)) END
       WHERE token_id = $1 AND revoked_at IS NULL RETURNING ${columns}`,
        [id, label ?? null, roles ? JSON.stringify(roles) : null],
      )
      remembered.clear()
      return row && viewOf(row)
    },
    /** Refused here from now on, and everywhere within a second. False: there is no such token. */
    async revoke(id: string): Promise<boolean> {
      const row = await one(
        database,
        'UPDATE tokens SET revoked_at = clock_timestamp() WHERE token_id = $1 AND revoked_at IS NULL RETURNING token_id',
        [id],
      )
      remembered.clear()
      return row !== null
    },
    async list(filter: { business_id?: string; limit: number; cursor?: string }): Promise<Page<TokenView>> {
      const after = readCursor(filter.cursor)
      const { rows } = await database.query<Row>(
        `SELECT ${columns} FROM tokens WHERE revoked_at IS NULL AND ($1::text IS NULL OR tenant = $1)
         AND ($2::text IS NULL OR (created_at, token_id) < ($2::timestamptz, $3))
       ORDER BY created_at DESC, token_id DESC LIMIT $4`,
        [filter.business_id ?? null, after?.at ?? null, after?.id ?? null, filter.limit + 1],
      )
      return pageOf(rows, filter.limit, viewOf)
    },
    /** Who a bearer token is, or null. */
    async authenticate(token: string): Promise<Caller | null> {
      const hash = sha256(token)
      const known = remembered.get(hash)
      const fresh = known && clock.monotonicMs() - known.at < rememberedMs
      return fresh ? known.caller : look(hash)
    },
  }
}

export type Tokens = ReturnType<typeof createTokens>
