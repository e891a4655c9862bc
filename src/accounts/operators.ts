import { randomBytes } from 'node:crypto'
import { type Database, hasRow, queryOne } from '../infra/database/database.ts'
import { readPage } from '../infra/database/pagination.ts'
import { sha256 } from '../infra/lib/ids.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Page } from '../state/run-view.ts'
import type { NewOperator, OperatorInput, OperatorView } from './audit-schemas.ts'
import { createTokenCache } from './token-cache.ts'

/** Tokens of operators begin with this. */
const prefix = 'mason_op_'
const columns = 'operator_id AS id, name, created_at'
type OperatorRow = Omit<OperatorView, 'created_at'> & { created_at: Date }
const toView = ({ created_at, ...row }: OperatorRow): OperatorView => ({
  ...row,
  created_at: created_at.toISOString(),
})

type OperatorCaller = { token_id: string; label: string }

/** Admin tokens of people: stored as a hash, returned once, and what they change is logged under their name. */
export const createOperators = (database: Database, clock: Clock) => {
  const callers = createTokenCache(clock, (hash) =>
    queryOne<OperatorCaller>(
      database,
      'SELECT operator_id AS token_id, name AS label FROM operators WHERE token_hash = $1 AND revoked_at IS NULL',
      [hash],
    ),
  )
  return {
    async create({ name }: OperatorInput): Promise<NewOperator> {
      const token = `${prefix}${randomBytes(32).toString('base64url')}`
      const row = await queryOne<OperatorRow>(
        database,
        `INSERT INTO operators (operator_id, token_hash, name) VALUES ($1, $2, $3) RETURNING ${columns}`,
        [`opr_${randomBytes(12).toString('hex')}`, sha256(token), name],
      )
      return { ...toView(row as OperatorRow), token }
    },
    async get(id: string): Promise<OperatorView | null> {
      const statement = `SELECT ${columns} FROM operators WHERE operator_id = $1 AND revoked_at IS NULL`
      const row = await queryOne<OperatorRow>(database, statement, [id])
      return row && toView(row)
    },
    async change(id: string, { name }: { name?: string }): Promise<OperatorView | null> {
      const row = await queryOne<OperatorRow>(
        database,
        `UPDATE operators SET name = COALESCE($2, name) WHERE operator_id = $1 AND revoked_at IS NULL RETURNING ${columns}`,
        [id, name ?? null],
      )
      callers.clear()
      return row && toView(row)
    },
    /** Invalid here at once, and everywhere within a second. False: there is no such token. */
    async revoke(id: string): Promise<boolean> {
      const statement =
        'UPDATE operators SET revoked_at = clock_timestamp() WHERE operator_id = $1 AND revoked_at IS NULL RETURNING operator_id'
      const isRevoked = await hasRow(database, statement, [id])
      callers.clear()
      return isRevoked
    },
    list: (page: { limit: number; cursor?: string }): Promise<Page<OperatorView>> =>
      readPage(
        database,
        {
          select: columns,
          from: 'operators',
          where: 'revoked_at IS NULL',
          at: 'created_at',
          id: 'operator_id',
        },
        page,
        toView,
      ),
    /** The operator of a bearer token, or null. */
    authenticate: async (token: string): Promise<OperatorCaller | null> =>
      token.startsWith(prefix) ? callers.find(token) : null,
  }
}

/** See `createOperators`. */
export type Operators = ReturnType<typeof createOperators>
