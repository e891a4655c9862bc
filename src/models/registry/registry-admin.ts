import { ensureBusiness } from '../../accounts/businesses.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { cutJson, isLongJson } from '../../infra/database/pagination.ts'
import type { Hints } from '../../infra/queue/hints.ts'
import {
  createResourceStore,
  dropNulls,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { Json } from '../../state/runtime-state.ts'
import { scenarioSchemas } from '../../state/scenario.ts'
import type { Registry } from '../ports/model-ports.ts'
import type { CategoryView, categorySchemas } from '../schemas/catalog.ts'
import type { FormatTestView, ModelProbes } from '../schemas/model-probe.ts'
import type { FormatInput, FormatView, formatSchemas } from '../schemas/response-format.ts'
import type { GrantInput, grantSchemas, routeSchemas } from '../schemas/routing.ts'
import { createEndpoints } from './endpoints.ts'
import { findAliasErrors, findCategoryErrors, findKeyErrors } from './reference-checks.ts'
import { registryLock, toFormatFields } from './registry-rows.ts'
import { createKeys } from './vendor-keys.ts'
import { createModels } from './vendor-models.ts'
import { createVendors } from './vendors.ts'

type Definition = Pick<FormatInput, (typeof definitionFields)[number]>
type StoredFormat = ResourceRow &
  Pick<FormatView, 'name' | 'category' | 'built_in'> & { definition: Definition }

const definitionFields = ['request', 'paths', 'stream', 'poll', 'schema', 'samples'] as const
const emptyDefinition = `'{"paths":{}}'::json`

const refuseBuiltIn =
  (what: string, remedy: string) =>
  ({ name, built_in }: { name: string; built_in: boolean }): void => {
    if (built_in) throw new MasonError('forbidden', `${what} "${name}" is built in`, { remedy })
  }

/** How to read responses. Built-in formats can be copied, not changed. */
const createFormats = (
  context: ResourceStoreContext & { findFormatErrors(format: FormatInput): FieldError[] },
) =>
  createResourceStore<StoredFormat, typeof formatSchemas>(context, {
    name: 'response format',
    prefix: 'fmt',
    table: 'response_formats',
    idColumn: 'format_id',
    fields: ['name', 'category'],
    readOnly: ['built_in'],
    columns: 't.definition',
    listed: {
      columns: `${cutJson('t.definition', emptyDefinition)} AS definition`,
      truncated: Object.fromEntries(definitionFields.map((field) => [field, isLongJson('t.definition')])),
    },
    toView: toFormatFields,
    toInput: toFormatFields,
    findErrors: async (sql, input, { id, before }) => [
      ...context.findFormatErrors(input),
      ...(await findCategoryErrors(sql, [input.category], () => '/category')),
      ...(before && input.request == null ? await findRequestErrors(sql, id) : []),
    ],
    toValues: ({ name: _, category: __, ...definition }) => ({
      definition: JSON.stringify(definition),
      status: 'active',
    }),
    dependents: {
      by: 'id',
      query:
        "SELECT 'model' AS kind, model_id AS id, name FROM models WHERE response_format_id = $1 LIMIT 100",
    },
    guard: refuseBuiltIn(
      'response format',
      'copy it: POST /admin/v1/response-formats with its request, paths … under another name',
    ),
  })

/** Models at endpoints with the http protocol need the template. */
const findRequestErrors = async (sql: Sql, id: string): Promise<FieldError[]> => {
  const { rows } = await sql.query<{ name: string }>(
    `SELECT m.name FROM models m JOIN endpoints e USING (endpoint_id) WHERE m.response_format_id = $1 AND e.protocol = 'http'
     ORDER BY m.name LIMIT 1`,
    [id],
  )
  return rows.map(({ name }) => ({ pointer: '/request', detail: `is needed by model "${name}"` }))
}

/** The business of a grant for a user alone is `default`: tokens of other businesses may use any user id. */
const toBusinessId = ({ business_id }: Pick<GrantInput, 'business_id'>): string => business_id ?? 'default'

/** Which business or user may use which key; a key without grants is for all. */
const createGrants = (context: ResourceStoreContext) =>
  createResourceStore<ResourceRow, typeof grantSchemas>(context, {
    name: 'grant',
    prefix: 'gra',
    table: 'grants',
    idColumn: 'grant_id',
    fields: ['key_id', 'business_id', 'user_id'],
    filters: {
      key_id: 't.key_id = $in_key_id',
      business_id: 't.business_id = $in_business_id',
      user_id: 't.user_id = $in_user_id',
    },
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

type StoredCategory = ResourceRow & Pick<CategoryView, 'name' | 'built_in'>

/** Categories of models: the built-in ones and those of admins. */
const createCategories = (context: ResourceStoreContext) =>
  createResourceStore<StoredCategory, typeof categorySchemas>(context, {
    name: 'category',
    prefix: 'cat',
    table: 'categories',
    idColumn: 'category_id',
    fields: ['name', 'description'],
    readOnly: ['built_in'],
    dependents: {
      by: 'name',
      query: `SELECT 'model' AS kind, model_id AS id, name FROM models WHERE category = $1
        UNION ALL SELECT 'endpoint', endpoint_id, name FROM endpoints WHERE $1 = ANY (categories)
        UNION ALL SELECT 'response format', format_id, name FROM response_formats WHERE category = $1
        UNION ALL SELECT 'route', route_id, 'category ' || category FROM routes WHERE category = $1 LIMIT 100`,
    },
    guard: refuseBuiltIn('category', 'add a category with POST /admin/v1/categories'),
  })

/** Scenarios: kinds of request, and how the graph handles each. */
const createScenarios = (context: ResourceStoreContext) =>
  createResourceStore<ResourceRow, typeof scenarioSchemas>(context, {
    name: 'scenario',
    prefix: 'sce',
    table: 'scenarios',
    idColumn: 'scenario_id',
    input: scenarioSchemas.input,
    json: ['prompts', 'limits', 'models'],
    merged: ['prompts', 'limits', 'models'],
    findErrors: (sql, { models }) => {
      const byRole = dropNulls(models)
      const roles = Object.keys(byRole)
      return findAliasErrors(sql, Object.values(byRole), (index) => `/models/${roles[index]}`)
    },
  })

/** Which models serve a role or a category. */
const createRoutes = (context: ResourceStoreContext) =>
  createResourceStore<ResourceRow, typeof routeSchemas>(context, {
    name: 'route',
    prefix: 'rou',
    table: 'routes',
    idColumn: 'route_id',
    fields: ['role', 'category', 'models', 'strategy'],
    json: ['models'],
    filters: { role: 't.role = $in_role', category: 't.category = $in_category' },
    findErrors: async (sql, { category, models }) => {
      const aliases = models.map(({ model }) => model)
      return [
        ...(await findCategoryErrors(sql, category == null ? [] : [category], () => '/category')),
        ...(await findAliasErrors(sql, aliases, (index) => `/models/${index}/model`, true)),
      ]
    },
  })

/** What the operations of admins need. */
export type RegistryAdminOptions = {
  database: Database
  /** @internal */
  masterKeys: MasterKeys
  /** @internal */
  registry: Pick<Registry, 'refresh' | 'view'>
  hints: Pick<Hints, 'publish'>
  /** Makes real calls. */
  models: ModelProbes
  formats: {
    findErrors(format: FormatInput): FieldError[]
    test(format: FormatView, raw: Json): FormatTestView
  }
}

/** The channel on which processes tell each other to look again. */
const healthChannel = 'model-health'

/** All operations of admins on the registry. A change takes effect here at once, in other processes within a second. */
export const createRegistryAdmin = (options: RegistryAdminOptions) => {
  const { database, masterKeys, registry, hints, models, formats } = options
  const context = {
    database,
    lock: registryLock,
    masterKeys,
    healthChanged: () => hints.publish(healthChannel, ''),
    changed: () => registry.refresh(),
    view: () => registry.view,
    findFormatErrors: formats.findErrors,
  }
  return {
    vendors: createVendors(context),
    keys: createKeys(context),
    endpoints: createEndpoints(context),
    models: createModels(context),
    categories: createCategories(context),
    formats: createFormats(context),
    routes: createRoutes(context),
    grants: createGrants(context),
    scenarios: createScenarios(context),
    probes: { ...models, testFormat: formats.test },
  }
}

/** All operations of admins on the registry. */
export type RegistryAdmin = ReturnType<typeof createRegistryAdmin>
