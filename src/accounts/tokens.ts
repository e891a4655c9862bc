import type { Database } from '../infra/database/database.ts'
import type { Clock } from '../state/ports/clock.ts'
import { tokenSchemas } from './account-schemas.ts'
import { ofBusiness } from './businesses.ts'
import { createTokenStore } from './token-store.ts'

type TokenCaller = { business_id: string; token_id: string; roles: string[] }

/** API tokens of businesses. */
export const createTokens = (database: Database, clock: Clock) =>
  createTokenStore<typeof tokenSchemas, TokenCaller>(database, clock, {
    ...ofBusiness,
    name: 'token',
    prefix: 'tok',
    table: 'tokens',
    idColumn: 'token_id',
    input: tokenSchemas.input,
    tokens: 'mason_',
    caller: 'tenant AS business_id, token_id, roles',
  })

/** See `createTokens`. */
export type Tokens = ReturnType<typeof createTokens>
