import { LRUCache } from 'lru-cache'
import { sha256 } from '../infra/lib/ids.ts'
import type { Clock } from '../state/ports/clock.ts'

/** Contract: a change by an admin takes effect in every process within 2 s. */
const cacheMs = 1000
const maxCachedTokens = 10_000

/** The callers of bearer tokens, by the hash: each is cached for a second, an unknown one not at all. */
export const createTokenCache = <Caller>(
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
      const fresh = known && clock.monotonicMs() - known.at < cacheMs
      return fresh ? known.caller : readCaller(hash)
    },
    clear: () => cache.clear(),
  }
}
