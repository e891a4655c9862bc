import { randomBytes } from 'node:crypto'
import { type Database, queryOne } from '../infra/database/database.ts'
import { readPage } from '../infra/database/pagination.ts'
import { sha256 } from '../infra/lib/ids.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Page } from '../state/run-view.ts'
import type { NewToken, TokenChange, TokenInput, TokenView } from './account-schemas.ts'
import { ensureBusiness } from './businesses.ts'
import { createTokenCache } from './token-cache.ts'

type TokenRow = Omit<TokenView, 'created_at'> & { created_at: Date }

const columns = 'token_id AS id, tenant AS business_id, label, roles, created_at'

const toTokenView = ({ created_at, ...row }: TokenRow): TokenView => ({
  ...row,
  created_at: created_at.toISOString(),
})

type TokenCaller = { business_id: string; token_id: string; roles: string[] }

/**
 * API tokens of businesses: stored as a hash, returned once. The caller of a token is cached for a second, so that a flood
 * of requests costs one query; a change through this process takes effect in it at once.
 */
export const createTokens = (database: Database, clock: Clock) => {
  const callers = createTokenCache(clock, (hash) =>
    queryOne<TokenCaller>(
      database,
      'SELECT tenant AS business_id, token_id, roles FROM tokens WHERE token_hash = $1 AND revoked_at IS NULL',
      [hash],
    ),
  )
  return {
    async create({ business_id, label, roles }: TokenInput): Promise<NewToken> {
      await ensureBusiness(database, business_id)
      const token = `mason_${randomBytes(32).toString('base64url')}`
      const id = `tok_${randomBytes(12).toString('hex')}`
      const row = await queryOne<TokenRow>(
        database,
        `INSERT INTO tokens (tenant, token_id, token_hash, label, roles)
       VALUES ($1, $2, $3, $4, ARRAY(SELECT json_array_elements_text($5::json))) RETURNING ${columns}`,
        [business_id, id, sha256(token), label, JSON.stringify(roles)],
      )
      return { ...toTokenView(row as TokenRow), token }
    },
    async get(id: string): Promise<TokenView | null> {
      const row = await queryOne<TokenRow>(
        database,
        `SELECT ${columns} FROM tokens WHERE token_id = $1 AND revoked_at IS NULL`,
        [id],
      )
      return row && toTokenView(row)
    },
    async change(id: string, { label, roles }: TokenChange): Promise<TokenView | null> {
      const row = await queryOne<TokenRow>(
        database,
        `UPDATE tokens SET label = COALESCE($2, label),
         roles = CASE WHEN $3::json IS NULL THEN roles ELSE ARRAY(SELECT json_array_elements_text($3::json)) END
       WHERE token_id = $1 AND revoked_at IS NULL RETURNING ${columns}`,
        [id, label ?? null, roles ? JSON.stringify(roles) : null],
      )
      callers.clear()
      return row && toTokenView(row)
    },
    /** Invalid here at once, and everywhere within a second. False: there is no such token. */
    async revoke(id: string): Promise<boolean> {
      const row = await queryOne(
        database,
        'UPDATE tokens SET revoked_at = clock_timestamp() WHERE token_id = $1 AND revoked_at IS NULL RETURNING token_id',
        [id],
      )
      callers.clear()
      return row !== null
    },
    list(filter: { business_id?: string; limit: number; cursor?: string }): Promise<Page<TokenView>> {
      const list = {
        select: columns,
        from: 'tokens',
        where: 'revoked_at IS NULL AND ($1::text IS NULL OR tenant = $1)',
        values: [filter.business_id ?? null],
        at: 'created_at',
        id: 'token_id',
      }
      return readPage(database, list, filter, toTokenView)
    },
    /** The caller of a bearer token, or null. */
    authenticate: (token: string): Promise<TokenCaller | null> => callers.find(token),
  }
}

/** See `createTokens`. */
export type Tokens = ReturnType<typeof createTokens>
