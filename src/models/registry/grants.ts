import { ensureBusiness } from '../../accounts/businesses.ts'
import { queryOne } from '../../infra/database/database.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import { MasonError } from '../../state/errors.ts'
import type { GrantChange, GrantInput, GrantView } from '../schemas/routing.ts'
import { findKeyErrors } from './reference-checks.ts'

/** The business of a grant for a user alone is `default`: tokens of other businesses may use any user id. */
const toBusinessId = ({ business_id }: Pick<GrantInput, 'business_id'>): string => business_id ?? 'default'

/** Which business or user may use which key; a key without grants is for all. */
export const createGrants = (context: ResourceStoreContext) =>
  createResourceStore<ResourceRow, GrantInput, GrantChange, GrantView>(context, {
    name: 'grant',
    prefix: 'gra',
    table: 'grants',
    idColumn: 'grant_id',
    fields: ['key_id', 'business_id', 'user_id'],
    scopedBy: ['key_id', 'business_id', 'user_id'],
    async findErrors(sql, { key_id, business_id, user_id }, { id }) {
      if (business_id == null && user_id == null)
        return [{ pointer: '/business_id', detail: 'give business_id, user_id or both' }]
      const errors = await findKeyErrors(sql, key_id)
      if (errors.length > 0) return errors
      const same = await queryOne<{ grant_id: string }>(
        sql,
        `SELECT grant_id FROM grants WHERE key_id = $1 AND grant_id <> $4
           AND business_id IS NOT DISTINCT FROM $2 AND user_id IS NOT DISTINCT FROM $3`,
        [key_id, toBusinessId({ business_id }), user_id ?? null, id],
      )
      if (same)
        throw new MasonError('already_exists', `grant "${same.grant_id}" of key "${key_id}" is the same`, {
          remedy: 'use that grant',
          detail: { errors: [{ pointer: '/key_id', detail: 'has this grant' }] },
        })
      await ensureBusiness(sql, toBusinessId({ business_id }))
      return []
    },
    toValues: (grant) => ({ business_id: toBusinessId(grant) }),
  })
