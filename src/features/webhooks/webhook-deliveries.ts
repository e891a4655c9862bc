import { type Database, queryOne } from '../../infra/database/database.ts'
import { readPage } from '../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../infra/database/row-times.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import { MasonError } from '../../state/errors.ts'
import type { Page } from '../../state/run-view.ts'
import type { DeliveryView } from './webhook-schemas.ts'

type DeliveryRow = Dated<DeliveryView>

const columns = `webhook_id AS id, tenant AS business_id, type, run_id, url, status, attempts, due_at, last_status, last_error,
  last_attempt_at, created_at, ended_at`

/** Which messages a list has. */
export type DeliveryFilter = {
  business_id?: string | undefined
  run_id?: string | undefined
  type?: DeliveryView['type'] | undefined
  status?: DeliveryView['status'] | undefined
}

const redacted = '[redacted]'

/** A URL without user, password, fragment and the values of its query. */
export const redactUrl = (url: string, scrubber: Pick<Scrubber, 'text'>): string => {
  if (!URL.canParse(url)) return redacted
  const { origin, pathname, searchParams } = new URL(url)
  const names = [...searchParams.keys()].map((name) => `${encodeURIComponent(name)}=${redacted}`)
  return scrubber.text(`${origin}${pathname}${names.length > 0 ? `?${names.join('&')}` : ''}`)
}

/** The messages of all businesses, for admins. Null: there is none of this id. */
export const createWebhookDeliveries = (database: Database, scrubber: Scrubber) => {
  const toView = (row: DeliveryRow): DeliveryView =>
    toIsoTimes({ ...row, url: redactUrl(row.url, scrubber), due_at: row.ended_at ? null : row.due_at })
  const readOne = async (statement: string, id: string): Promise<DeliveryView | null> => {
    const row = await queryOne<DeliveryRow>(database, statement, [id])
    return row && toView(row)
  }

  return {
    list: (
      { business_id, run_id, type, status }: DeliveryFilter,
      page: { limit: number; cursor?: string },
    ): Promise<Page<DeliveryView>> =>
      readPage<DeliveryRow, DeliveryView>(
        database,
        {
          select: columns,
          from: 'webhook_deliveries',
          where: `($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR run_id = $2)
            AND ($3::text IS NULL OR type = $3) AND ($4::text IS NULL OR status = $4)`,
          values: [business_id ?? null, run_id ?? null, type ?? null, status ?? null],
          at: 'created_at',
          id: 'webhook_id',
        },
        page,
        toView,
      ),
    get: (id: string) => readOne(`SELECT ${columns} FROM webhook_deliveries WHERE webhook_id = $1`, id),
    /** Sends it again under the same id, delivered or not, with all its tries; the address counts as there again. */
    replay: (id: string) =>
      readOne(
        `WITH one AS (SELECT tenant, url FROM webhook_deliveries WHERE webhook_id = $1), reopened AS (
           UPDATE webhook_deliveries d SET is_gone = false FROM one
           WHERE d.tenant = one.tenant AND md5(d.url) = md5(one.url) AND d.url = one.url AND d.is_gone AND d.webhook_id <> $1
         ) UPDATE webhook_deliveries SET status = 'pending', tries = 0, is_gone = false, due_at = clock_timestamp(), ended_at = NULL
         WHERE webhook_id = $1 RETURNING ${columns}`,
        id,
      ),
    /** A test message to the address of a business. Throws `invalid_request` where it has none. Null: no such business. */
    async ping(businessId: string): Promise<DeliveryView | null> {
      const business = await queryOne<{ url: string | null }>(
        database,
        'SELECT url FROM businesses LEFT JOIN webhook_settings USING (tenant) WHERE tenant = $1',
        [businessId],
      )
      if (!business) return null
      const view = await readOne(
        `INSERT INTO webhook_deliveries (tenant, type, url, host)
         SELECT tenant, 'webhook.ping', url, substring(url FROM '^[^/?#]+//[^/?#]+') FROM webhook_settings
         WHERE tenant = $1 AND url IS NOT NULL RETURNING ${columns}`,
        businessId,
      )
      if (view) return view
      throw new MasonError('invalid_request', `business "${businessId}" has no address for webhooks`, {
        remedy: `set it first: PATCH /admin/v1/businesses/${businessId}/webhook {"url": "https://…"}`,
      })
    },
  }
}

/** See `createWebhookDeliveries`. */
export type WebhookDeliveries = ReturnType<typeof createWebhookDeliveries>
