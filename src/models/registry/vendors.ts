import {
  createResourceStore,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import type { vendorSchemas } from '../schemas/catalog.ts'
import { createSettingsGuard } from './settings-guard.ts'

/** What a vendor is the parent of. */
export const ofVendor = { name: 'vendor', table: 'vendors', idColumn: 'vendor_id' }

/** The vendors whose models are called. */
export const createVendors = (context: ResourceStoreContext) =>
  createResourceStore<ResourceRow, typeof vendorSchemas>(context, {
    name: 'vendor',
    prefix: 'ven',
    table: 'vendors',
    idColumn: 'vendor_id',
    fields: ['name', 'homepage', 'status'],
    dependents: {
      by: 'id',
      query: `SELECT 'key' AS kind, key_id AS id, label AS name FROM vendor_keys WHERE vendor_id = $1
         UNION ALL SELECT 'endpoint', endpoint_id, name FROM endpoints WHERE vendor_id = $1
         UNION ALL SELECT 'model', model_id, name FROM models WHERE vendor_id = $1 LIMIT 100`,
    },
    guard: createSettingsGuard('vendor', ['name', 'status']),
  })
