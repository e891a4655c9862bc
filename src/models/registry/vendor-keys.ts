import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { queryOne } from '../../infra/database/database.ts'
import {
  changeResources,
  createResourceStore,
  type ResourceRow,
  type ResourceScope,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import { sealText } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { findLimitError } from '../metering/reservation-size.ts'
import type { RegistryView } from '../ports/model-ports.ts'
import type { KeyChange, KeyInput, KeyLimits, KeyView, keySchemas } from '../schemas/catalog.ts'
import { type HealthColumns, healthColumns, resetHealth, toHealthView } from './health-columns.ts'
import { toMicroLimits } from './registry-view.ts'
import { createSettingsGuard } from './settings-guard.ts'
import { ofVendor } from './vendors.ts'

type Row = ResourceRow &
  HealthColumns & {
    last_four: string
    vendor_id: string
    limits: KeyLimits
    health_models: KeyView['health']['models']
  }

/** The models that the key cannot be used with for now. */
const modelsColumn = `(SELECT COALESCE(json_agg(json_build_object('model', m.name, 'state', km.state, 'until', km.until,
    'last_error', km.last_error, 'closed_for', CASE WHEN km.for_all THEN 'all' ELSE 'some' END) ORDER BY m.name), '[]')
  FROM model_health km JOIN models m ON m.model_id = split_part(km.subject_id, ' ', 2)
  WHERE km.subject = 'key_model' AND km.state <> 'healthy' AND split_part(km.subject_id, ' ', 1) = t.key_id) AS health_models`
/** The secret is present only while it is set. */
type KeyFields = Omit<KeyInput, 'secret'> & { secret?: string }

/** The columns of a new secret. Throws `secret_unreadable`. */
export const sealSecret = (secret: string, vendor_id: string, row_id: string, keys: MasterKeys) => {
  const { sealed, ...wrapped } = sealText(secret, { purpose: 'secret', vendor_id, row_id }, keys)
  // to distinguish keys: four characters at most, never more than half of it
  const last_four = secret.slice(secret.length - Math.min(4, Math.floor(secret.length / 2)))
  return { ...wrapped, sealed_secret: sealed, last_four }
}

const guard = createSettingsGuard<KeyChange & { secret?: string }>('key', ['secret'])

/** The keys of one vendor. Views never have a secret. */
export const createKeys = (
  context: ResourceStoreContext & {
    masterKeys: MasterKeys
    healthChanged(): void
    /** The current view of the registry, with opened secrets. */
    view(): RegistryView
  },
) => {
  const store = createResourceStore<Row, typeof keySchemas, KeyFields>(context, {
    name: 'key',
    prefix: 'key',
    table: 'vendor_keys',
    idColumn: 'key_id',
    fields: ['label', 'limits', 'status'],
    json: ['limits'],
    merged: ['limits'],
    columns: `t.last_four, ${healthColumns}, ${modelsColumn}`,
    joins: "LEFT JOIN model_health h ON h.subject = 'key' AND h.subject_id = t.key_id",
    parent: ofVendor,
    toView: (row) => {
      const models = context.view().models.values()
      const limit_error = findLimitError(toMicroLimits(row.limits), row.vendor_id, models)
      const models_ = row.health_models.map((one) => ({
        ...one,
        until: one.until && new Date(one.until).toISOString(),
      }))
      return { secret: `…${row.last_four}`, health: { ...toHealthView(row), limit_error, models: models_ } }
    },
    toValues: ({ secret }, { id, scope: { vendor_id = '' }, before }) =>
      before === null && secret !== undefined ? sealSecret(secret, vendor_id, id, context.masterKeys) : {},
    dependents: {
      by: 'id',
      query: `SELECT 'request' AS kind, request_id AS id, 'in progress since ' || to_char(reserved_at AT TIME ZONE 'UTC', 'HH24:MI:SS"Z"') AS name
         FROM usage_reservations WHERE key_id = $1 LIMIT 100`,
    },
    guard,
    async removeDependents(sql, { id }) {
      await sql.query('DELETE FROM grants WHERE key_id = $1', [id])
      await resetHealth(sql, 'key', id)
    },
  })

  return {
    ...store,
    /** Replaces the secret at once and resets the key's health. Null: no such key. */
    rotate: (scope: ResourceScope, id: string, secret: string): Promise<KeyView | null> =>
      changeResources(context, async (sql) => {
        guard({ id }, { secret })
        const { vendor_id = '' } = scope
        const written = await queryOne(
          sql,
          `UPDATE vendor_keys SET master_key = $master_key, wrapped_key = $wrapped_key, sealed_secret = $sealed_secret,
             last_four = $last_four, updated_at = clock_timestamp()
           WHERE key_id = $id AND vendor_id = $vendor_id RETURNING key_id`,
          { id, vendor_id, ...sealSecret(secret, vendor_id, id, context.masterKeys) },
        )
        if (written) await resetHealth(sql, 'key', id)
        return written
      }).then((written) => {
        context.healthChanged()
        return written ? store.get(scope, id) : null
      }),
    /**
     * The key of a vendor that has this secret, or null. Secrets are compared in memory: no hash of one is stored. A
     * secret that cannot be opened matches none. Throws `not_found` when there is no such vendor.
     */
    async find({ vendor_id = '' }: ResourceScope, secret: string): Promise<KeyView | null> {
      // throws when there is no such vendor
      await store.list({ vendor_id }, { limit: 1 })
      await context.changed?.()
      const keys = context.view().keysByVendor.get(vendor_id) ?? []
      const same = keys.find((key) => key.secret !== null && isSameSecret(key.secret.reveal(), secret))
      return same ? store.get({ vendor_id }, same.id) : null
    },
    /** Enables or disables a key; enabling resets its health. Null: no such key. */
    async setStatus(scope: ResourceScope, id: string, status: KeyView['status']): Promise<KeyView | null> {
      const key = await store.change(scope, id, { status })
      if (!key || status === 'disabled' || isHealthy(key)) return key
      await resetHealth(context.database, 'key', id)
      context.healthChanged()
      return store.get(scope, id)
    },
  }
}

const isHealthy = ({ health }: KeyView): boolean => health.state === 'healthy' && health.models.length === 0

/** In constant time. */
const isSameSecret = (a: string, b: string): boolean => {
  const salt = randomBytes(32)
  const digest = (text: string) => createHmac('sha256', salt).update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
