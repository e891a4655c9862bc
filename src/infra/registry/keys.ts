import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { KeyChange, KeyInput, KeyLimits, KeyView } from '../../state/registry/catalog.ts'
import { one } from '../database/database.ts'
import type { RegistryView } from '../models/ports.ts'
import { type SealedPlace, seal } from '../secrets/envelope.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import type { User } from './faults.ts'
import { forgetHealth, type HealthColumns, healthColumns, healthOf } from './health.ts'
import { lastOf } from './last-of.ts'
import { guardSettings } from './settings-rows.ts'
import {
  changeRegistry,
  createStore,
  type Scope,
  type StoreContext,
  type StoredRow,
  timesOf,
} from './store.ts'

type Row = StoredRow &
  HealthColumns & {
    vendor_id: string
    label: string
    last_four: string
    limits: KeyLimits
    status: KeyView['status']
  }
/** The secret is known only while it is set. */
type Known = Omit<KeyInput, 'secret'> & { secret?: string }

const guard = guardSettings<KeyChange & { secret?: string }>('key', ['secret'])

/** Keys of one vendor. No answer ever holds a secret. */
export const createKeys = (
  context: StoreContext & {
    masterKeys: MasterKeys
    healthChanged(): void
    /** What this process has opened; up to date with what was changed by anyone. */
    view(): RegistryView
  },
) => {
  const sealedColumns = (secret: string, vendor_id: string, row_id: string) => {
    const place: SealedPlace = { purpose: 'secret', vendor_id, row_id }
    const { master_key, wrapped_key, sealed } = seal(secret, place, context.masterKeys)
    return { master_key, wrapped_key, sealed_secret: sealed, last_four: lastOf(secret) }
  }
  const store = createStore<Row, Known, KeyChange, KeyView>(context, {
    name: 'key',
    prefix: 'key',
    table: 'vendor_keys',
    idColumn: 'key_id',
    columns: `t.vendor_id, t.label, t.last_four, t.limits, t.status, ${healthColumns}`,
    joins: "LEFT JOIN model_health h ON h.subject = 'key' AND h.subject_id = t.key_id",
    scopedBy: ['vendor_id'],
    parent: { name: 'vendor', table: 'vendors', column: 'vendor_id' },
    viewOf: (row) => ({
      vendor_id: row.vendor_id,
      ...inputOf(row),
      secret: `…${row.last_four}`,
      health: healthOf(row),
      ...timesOf(row),
    }),
    inputOf,
    merge: (before, { limits, ...change }) =>
      ({ ...before, ...change, limits: { ...before.limits, ...limits } }) as Known,
    faultsOf: async () => [],
    valuesOf: ({ label, limits, status, secret }, { id, scope: { vendor_id = '' }, before }) => ({
      label,
      limits: JSON.stringify(limitsSet(limits)),
      status,
      ...(before === null && secret !== undefined && { vendor_id, ...sealedColumns(secret, vendor_id, id) }),
    }),
    usersOf: async (sql, { id }) => {
      const { rows } = await sql.query<User>(
        `SELECT 'request' AS kind, request_id AS id, 'under way since ' || to_char(reserved_at AT TIME ZONE 'UTC', 'HH24:MI:SS"Z"') AS name
         FROM usage_reservations WHERE key_id = $1 LIMIT 100`,
        [id],
      )
      return rows
    },
    guard,
    async removeWith(sql, { id }) {
      await sql.query('DELETE FROM grants WHERE key_id = $1', [id])
      await forgetHealth(sql, 'key', id)
    },
  })

  return {
    ...store,
    /** The new secret serves at once in place of the old one, and is given a fresh start. Null: no such key. */
    rotate: (scope: Scope, id: string, secret: string): Promise<KeyView | null> =>
      changeRegistry(context, async (sql) => {
        guard({ id }, { secret })
        const { vendor_id = '' } = scope
        const sealed = sealedColumns(secret, vendor_id, id)
        const written = await one(
          sql,
          `UPDATE vendor_keys SET master_key = $3, wrapped_key = $4, sealed_secret = $5, last_four = $6, updated_at = clock_timestamp()
           WHERE key_id = $1 AND vendor_id = $2 RETURNING key_id`,
          [id, vendor_id, ...Object.values(sealed)],
        )
        if (written) await forgetHealth(sql, 'key', id)
        return written
      }).then((written) => {
        context.healthChanged()
        return written ? store.get(scope, id) : null
      }),
    /**
     * The key of a vendor that has this secret, or null. Secrets are compared whole, in memory: no hash of one is kept
     * anywhere. One that cannot be opened is like no other.
     */
    async find({ vendor_id = '' }: Scope, secret: string): Promise<KeyView | null> {
      // says so where there is no such vendor
      await store.list({ vendor_id }, { limit: 1 })
      await context.changed()
      const keys = context.view().keysByVendor.get(vendor_id) ?? []
      const same = keys.find((key) => key.secret !== null && isSame(key.secret.reveal(), secret))
      return same ? store.get({ vendor_id }, same.id) : null
    },
    /** By hand, whatever its health: an enabled one is given a fresh start. Null: no such key. */
    async setStatus(scope: Scope, id: string, status: KeyView['status']): Promise<KeyView | null> {
      const key = await store.change(scope, id, { status })
      if (!key || status === 'disabled' || key.health.state === 'healthy') return key
      await forgetHealth(context.database, 'key', id)
      context.healthChanged()
      return store.get(scope, id)
    },
  }
}

/** Takes as long for any two. */
const isSame = (a: string, b: string): boolean => {
  const salt = randomBytes(32)
  const digest = (text: string) => createHmac('sha256', salt).update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

const inputOf = ({ label, limits, status }: Row): Known => ({ label, limits, status })

const limitsSet = (limits: KeyLimits): KeyLimits =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit != null))
