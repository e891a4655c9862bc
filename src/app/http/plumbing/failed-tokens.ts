import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { sha256 } from '../../../infra/lib/ids.ts'
import { isMasonError, MasonError } from '../../../state/errors.ts'

const maxFailures = 5
const minuteMs = 60_000
const knownMs = 3_600_000
/** As a size: `max` would allocate all entries at the start, which takes it 50 ms. */
const limits = { maxSize: 100_000, sizeCalculation: () => 1 }

/** Counts failed tokens by address. */
export type FailedTokens = ReturnType<typeof createFailedTokens>

/**
 * Ends guessing: after five failed tokens in a minute an address gets 429 until that minute is over. Tokens that it used within
 * the last hour go on working, so that one client does not lock out the others behind the same proxy. This process only.
 */
export const createFailedTokens = () => {
  const failures = new LRUCache<string, { count: number; endsAt: number }>({ ...limits, ttl: minuteMs })
  const known = new LRUCache<string, true>({ ...limits, ttl: knownMs })
  const running = new Map<string, Set<Promise<unknown>>>()

  /** How many more tokens of this address may be tried now. Throws `too_many_requests` where the minute has seen enough. */
  const countFree = (ip: string): number => {
    const record = failures.get(ip)
    if (record && record.count >= maxFailures) throw tooMany(record.endsAt)
    return maxFailures - (record?.count ?? 0) - (running.get(ip)?.size ?? 0)
  }
  const countFailure = (ip: string): void => {
    const record = failures.get(ip)
    if (record) record.count += 1
    else failures.set(ip, { count: 1, endsAt: performance.now() + minuteMs })
  }
  const attempt = <Result>(ip: string, check: () => Promise<Result>): Promise<Result> =>
    check().catch((error: unknown) => {
      if (isMasonError(error, 'unauthorized')) countFailure(ip)
      throw error
    })
  const track = async <Result>(ip: string, result: Promise<Result>): Promise<Result> => {
    const settled = result.catch(() => undefined)
    const own = running.get(ip) ?? new Set()
    running.set(ip, own.add(settled))
    await settled
    own.delete(settled)
    if (own.size === 0) running.delete(ip)
    return result
  }

  return {
    /** The result of `check` for a token from this request's address. Throws `too_many_requests` in place of trying it. */
    async guard<Result>(
      { ip }: FastifyRequest,
      token: string,
      check: () => Promise<Result>,
    ): Promise<Result> {
      const key = sha256(`${ip} ${token}`)
      // a burst gets no more tries: it waits for tokens that, should they all fail, would be the last ones
      while (!known.has(key) && countFree(ip) <= 0) await Promise.race(running.get(ip) ?? [null])
      const result = attempt(ip, check)
      await (known.has(key) ? result : track(ip, result))
      known.set(key, true)
      return result
    },
  }
}

const tooMany = (endsAt: number): MasonError =>
  new MasonError('too_many_requests', `${maxFailures} tokens of this address failed within a minute`, {
    remedy: 'try again after Retry-After, with a token that is valid',
    detail: { retry_after_s: (endsAt - performance.now()) / 1000 },
  })
