import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { z } from 'zod'
import { type Database, queryOne } from '../infra/database/database.ts'
import { sha256 } from '../infra/lib/ids.ts'
import {
  createResourceStore,
  type ResourceKind,
  type ResourceRow,
  type ResourceScope,
} from '../infra/resources/resource-store.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { ResourceSchemas } from '../state/resource-schema.ts'

/** Contract: a change by an admin takes effect in every process within 2 s. */
const cacheMs = 1000
const maxCachedTokens = 10_000

/** The callers of bearer tokens, by the hash: each is cached for a second, an unknown one not at all. */
const createTokenCache = <Caller>(
  clock: Pick<Clock, 'monotonicMs'>,
  read: (hash: string) => Promise<Caller | null>,
) => {
  const cache = new LRUCache<string, { at: number; caller: Promise<Caller | null> }>({ max: maxCachedTokens })
  const readCaller = (hash: string): Promise<Caller | null> => {
    const caller = read(hash)
    const cachedEntry = { at: clock.monotonicMs(), caller }
    cache.set(hash, cachedEntry)
    const forget = (): void => {
      if (cache.get(hash) === cachedEntry) cache.delete(hash)
    }
    caller.then((cached) => cached ?? forget(), forget)
    return caller
  }
  return {
    async find(token: string): Promise<Caller | null> {
      const hash = sha256(token)
      const known = cache.get(hash)
      return known && clock.monotonicMs() - known.at < cacheMs ? known.caller : readCaller(hash)
    },
    clear: () => cache.clear(),
  }
}

/**
 * Bearer tokens: stored as a hash, returned once, revoked for good. The caller of a token is cached for a second, so that a
 * flood of requests costs one query; a change through this process takes effect in it at once. `tokens` begin with their
 * prefix; `caller` are the columns of one.
 */
export const createTokenStore = <
  Schemas extends ResourceSchemas,
  Caller,
  Input = z.output<Schemas['input']>,
  Change = z.output<Schemas['change']>,
  View = z.output<Schemas['view']>,
>(
  database: Database,
  clock: Pick<Clock, 'monotonicMs'>,
  {
    tokens,
    caller,
    ...kind
  }: ResourceKind<ResourceRow, Input & { token?: string }, Change, View> & { tokens: string; caller: string },
) => {
  const callers = createTokenCache(clock, (hash) =>
    queryOne<Caller>(
      database,
      `SELECT ${caller} FROM ${kind.table} WHERE token_hash = $1 AND revoked_at IS NULL`,
      [hash],
    ),
  )
  const store = createResourceStore<ResourceRow, Schemas, Input & { token?: string }, Change, View>(
    { database, changed: callers.clear },
    {
      ...kind,
      times: ['created_at'],
      endedAt: 'revoked_at',
      toValues: ({ token }) => (token === undefined ? {} : { token_hash: sha256(token) }),
    },
  )
  return {
    ...store,
    /** With the token, which is only here. */
    async create(scope: ResourceScope, input: Input): Promise<View & { token: string }> {
      const token = `${tokens}${randomBytes(32).toString('base64url')}`
      return { ...(await store.create(scope, { ...input, token })), token }
    },
    /** The caller of a bearer token, or null. */
    authenticate: async (token: string): Promise<Caller | null> =>
      token.startsWith(tokens) ? callers.find(token) : null,
  }
}
