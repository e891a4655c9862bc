import type { VendorChange, VendorInput, VendorView } from '../../state/registry/catalog.ts'
import type { User } from './faults.ts'
import { guardSettings } from './settings-rows.ts'
import { createStore, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Row = StoredRow & { name: string; homepage: string | null; status: VendorView['status'] }

/** Those whose models are called. */
export const createVendors = (context: StoreContext) =>
  createStore<Row, VendorInput, VendorChange, VendorView>(context, {
    name: 'vendor',
    prefix: 'ven',
    table: 'vendors',
    idColumn: 'vendor_id',
    columns: 't.name, t.homepage, t.status',
    scopedBy: [],
    viewOf: (row) => ({ ...inputOf(row), ...timesOf(row) }),
    inputOf,
    merge: (before, change) => ({ ...before, ...change }) as VendorInput,
    faultsOf: async () => [],
    valuesOf: ({ name, homepage, status }) => ({ name, homepage: homepage ?? null, status }),
    usersOf: async (sql, { id }) => {
      const { rows } = await sql.query<User>(
        `SELECT 'key' AS kind, key_id AS id, label AS name FROM vendor_keys WHERE vendor_id = $1
         UNION ALL SELECT 'endpoint', endpoint_id, name FROM endpoints WHERE vendor_id = $1
         UNION ALL SELECT 'model', model_id, name FROM models WHERE vendor_id = $1 LIMIT 100`,
        [id],
      )
      return rows
    },
    guard: guardSettings('vendor', ['name', 'status']),
  })

const inputOf = ({ name, homepage, status }: Row): VendorInput => ({ name, homepage, status })
