import type { Config } from '../infra/config/config.ts'
import { type Database, queryOne } from '../infra/database/database.ts'
import { MasonError } from '../state/errors.ts'
import type { Clock } from '../state/ports/clock.ts'
import { createSharedCounter, type SharedCount, toMinuteStatement } from './shared-counter.ts'

/** The quotas of businesses on storage and on requests, which all processes count together. */
export const createQuotas = (database: Database, defaults: Config['quotas'], clock: Clock) => {
  const addStorage = createSharedCounter(clock, (businessId) =>
    database.asBusiness(
      businessId,
      (sql) => queryOne<SharedCount>(sql, storageStatement, [businessId, defaults.storageBytes]),
      { pipelined: true },
    ),
  )
  const addRequests = createSharedCounter(clock, (businessId, own) =>
    database.asBusiness(
      businessId,
      (sql) => queryOne<SharedCount>(sql, requestsStatement, [businessId, defaults.requestsPerMinute, own]),
      { pipelined: true },
    ),
  )

  return {
    /** Counts bytes that a business is about to store. Throws `quota_exceeded`. */
    async checkStorage(businessId: string, bytes: number): Promise<void> {
      const full = await addStorage(businessId, bytes)
      if (!full) return
      throw new MasonError(
        'quota_exceeded',
        `the business may store ${full.max} bytes, and has ${full.used + full.own}`,
        {
          remedy:
            'delete files and sessions that are not needed; an operator raises quotas.storage_bytes of the business, or MASON_QUOTA_STORAGE_MB',
        },
      )
    },
    /** Counts one request. Throws `too_many_requests` until the minute is over. */
    async checkRequest(businessId: string): Promise<void> {
      const full = await addRequests(businessId, 1)
      if (!full) return
      const passed = (clock.monotonicMs() - full.at) / 1000
      throw new MasonError(
        'too_many_requests',
        `the business may send ${full.max} requests a minute, and has sent them`,
        {
          remedy:
            'send fewer requests; an operator raises quotas.requests_per_minute of the business, or MASON_QUOTA_REQUESTS_PER_MINUTE',
          detail: { retry_after_s: Math.max(1, full.left_s - passed) },
        },
      )
    },
  }
}

/** See `createQuotas`. */
export type Quotas = ReturnType<typeof createQuotas>

/** Uploads that are open count with the bytes they announced. */
const storageStatement = `
  SELECT COALESCE(quota_storage_bytes, $2::bigint)::float8 AS max, 0 AS left_s,
    ((SELECT COALESCE(sum(COALESCE(b.size, octet_length(b.bytes))), 0) FROM blobs b WHERE b.tenant = $1)
    + (SELECT COALESCE(sum(GREATEST(f.length, f.received)), 0) FROM files f WHERE f.tenant = $1 AND f.sha256 IS NULL))::float8 AS used
  FROM businesses WHERE tenant = $1`

const requestsStatement = toMinuteStatement(
  'request_counts',
  'tenant',
  'tenant',
  'SELECT tenant, COALESCE(quota_requests_per_minute, $2::int) AS max FROM businesses WHERE tenant = $1',
)
