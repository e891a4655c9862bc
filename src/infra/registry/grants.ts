import { MasonError } from '../../state/errors.ts'
import type { GrantChange, GrantInput, GrantView } from '../../state/registry/routing.ts'
import { one } from '../database/database.ts'
import { ensureBusiness } from '../runs/admit.ts'
import { keyFaults } from './lookups.ts'
import { createStore, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Row = StoredRow & Pick<GrantView, 'key_id' | 'business_id' | 'user_id'>

/** Whose a user is when no business is named: a token of another business may say any user id. */
const businessOf = ({ business_id }: Pick<GrantInput, 'business_id'>): string => business_id ?? 'default'

/** Who may use which key; a key without grants is for all. */
export const createGrants = (context: StoreContext) =>
  createStore<Row, GrantInput, GrantChange, GrantView>(context, {
    name: 'grant',
    prefix: 'gra',
    table: 'grants',
    idColumn: 'grant_id',
    columns: 't.key_id, t.business_id, t.user_id',
    scopedBy: ['key_id', 'business_id', 'user_id'],
    viewOf: (row) => ({ ...inputOf(row), ...timesOf(row) }),
    inputOf,
    merge: (before, change) => ({ ...before, ...change }) as GrantInput,
    async faultsOf(sql, { key_id, business_id, user_id }, { id }) {
      if (business_id == null && user_id == null)
        return [{ pointer: '/business_id', detail: 'give business_id, user_id or both' }]
      const faults = await keyFaults(sql, key_id)
      if (faults.length > 0) return faults
      const same = await one<{ grant_id: string }>(
        sql,
        `SELECT grant_id FROM grants WHERE key_id = $1 AND grant_id <> $4
           AND business_id IS NOT DISTINCT FROM $2 AND user_id IS NOT DISTINCT FROM $3`,
        [key_id, businessOf({ business_id }), user_id ?? null, id],
      )
      if (same)
        throw new MasonError(
          'already_exists',
          `grant "${same.grant_id}" says this of key "${key_id}" already`,
          {
            remedy: 'there is nothing to do',
            detail: { errors: [{ pointer: '/key_id', detail: 'has this grant' }] },
          },
        )
      await ensureBusiness(sql, businessOf({ business_id }))
      return []
    },
    valuesOf: ({ key_id, business_id, user_id }) => ({
      key_id,
      business_id: businessOf({ business_id }),
      user_id: user_id ?? null,
    }),
    usersOf: async () => [],
  })

const inputOf = ({ key_id, business_id, user_id }: Row) => ({ key_id, business_id, user_id })
