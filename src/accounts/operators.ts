import type { Database } from '../infra/database/database.ts'
import type { Clock } from '../state/ports/clock.ts'
import { operatorSchemas } from './audit-schemas.ts'
import { createTokenStore } from './token-store.ts'

type OperatorCaller = { token_id: string; label: string }

/** Admin tokens of people: what they change is logged under their name. */
export const createOperators = (database: Database, clock: Clock) =>
  createTokenStore<typeof operatorSchemas, OperatorCaller>(database, clock, {
    name: 'operator',
    prefix: 'opr',
    table: 'operators',
    idColumn: 'operator_id',
    input: operatorSchemas.input,
    tokens: 'mason_op_',
    caller: 'operator_id AS token_id, name AS label',
  })

/** See `createOperators`. */
export type Operators = ReturnType<typeof createOperators>
