import type { ZodObject, ZodType, z } from 'zod'
import type { Database } from '../infra/database/database.ts'
import {
  createResourceStore,
  type ResourceKind,
  type ResourceRow,
  type ResourceStore,
} from '../infra/resources/resource-store.ts'
import {
  actionRoute,
  type Resource,
  type ResourceAction,
  resourceRoutes,
  toResourceName,
} from '../routes/resource-routes.ts'
import { databaseRef } from './core.ref.ts'
import type { Needed, Needs, ResourceDefinition } from './definitions.ts'

/**
 * `*.resource.ts`: a table that admins manage by its schemas. `operations` are those that differ from the store's, `actions`
 * those of one beside them.
 *
 * @example
 * ```ts
 * import {
 *   businessIdSchema,
 *   businessQuery,
 *   defineResource,
 *   labelSchema,
 *   ofBusiness,
 *   toChangeSchema,
 *   toViewSchema,
 * } from 'mason-runtime/features'
 * import { z } from 'zod'
 *
 * const input = z.strictObject({ business_id: businessIdSchema.default('default'), text: labelSchema })
 * export default defineResource({
 *   path: '/admin/v1/announcements',
 *   one: 'an announcement',
 *   many: 'announcements',
 *   input: input.meta({ examples: [{ text: 'Closed on Monday' }] }),
 *   change: toChangeSchema(input.pick({ text: true })).meta({ examples: [{ text: 'Open' }] }),
 *   view: toViewSchema(input.shape),
 *   filter: businessQuery,
 *   ...ofBusiness,
 *   prefix: 'ann',
 *   table: 'announcements',
 *   idColumn: 'announcement_id',
 * })
 * ```
 */
export const defineResource = <
  Input extends ZodObject,
  Change extends ZodType,
  View extends ZodObject,
  Row extends ResourceRow = ResourceRow,
  Changed extends z.output<Change> & object = z.output<Change> & object,
  const Given extends Needs = Record<never, never>,
>(
  resource: Omit<Resource<Input, Change, View>, 'store'> &
    Omit<ResourceKind<Row, z.output<Input>, Changed, z.output<View>>, 'name' | 'input'> & {
      needs?: Given
      operations?(
        store: ResourceStore<z.output<Input>, Changed, z.output<View>>,
        needed: Needed<Given>,
      ): Partial<ResourceStore<z.output<Input>, Changed, z.output<View>>>
      actions?(
        store: ResourceStore<z.output<Input>, Changed, z.output<View>>,
        needed: Needed<Given>,
      ): readonly ResourceAction[]
    },
): ResourceDefinition => ({
  kind: 'resource',
  needs: { ...resource.needs, database: databaseRef },
  add(app, { database, ...needed }, server) {
    const { operations, actions } = resource
    const own = needed as unknown as Needed<Given>
    if (resource.input.shape.business_id && !resource.fixed)
      throw new Error('its body has business_id, which ofBusiness stores: write ...ofBusiness')
    type Schemas = { input: Input; change: Change; view: View }
    const store = createResourceStore<Row, Schemas, z.output<Input>, Changed>(
      { database: database as Database },
      { name: toResourceName(resource.one), ...resource },
    )
    resourceRoutes(app, { ...resource, store: () => ({ ...store, ...operations?.(store, own) }) })
    for (const action of actions?.(store, own) ?? []) actionRoute(app, server, resource, action)
  },
})
