import { findBaseUrlErrors, isPlainlyPrivate } from '../../infra/egress/urls.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import { openSealedText, type SealBinding, type SealedText, sealText } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { isPublicHeader } from '../../infra/secrets/redaction.ts'
import { MasonError, toMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { EndpointInput, EndpointView, endpointSchemas, ModelInput } from '../schemas/catalog.ts'
import type { FormatInput } from '../schemas/response-format.ts'
import { type HealthColumns, healthColumns, resetHealth, toHealthView } from './health-columns.ts'
import { findCategoryErrors } from './reference-checks.ts'
import { createSettingsGuard } from './settings-guard.ts'
import { ofVendor } from './vendors.ts'

type Row = ResourceRow &
  HealthColumns &
  HeaderColumns &
  Pick<EndpointView, 'vendor_id' | 'base_url' | 'allow_private'>

/** Headers are null when they cannot be opened; they stay as they are. */
type EndpointFields = Omit<EndpointInput, 'headers'> & { headers: EndpointInput['headers'] | null }

/** The endpoints of one vendor: the base URLs of its models. */
export const createEndpoints = (context: ResourceStoreContext & { masterKeys: MasterKeys }) => {
  const { masterKeys } = context
  return createResourceStore<Row, typeof endpointSchemas, EndpointFields>(context, {
    name: 'endpoint',
    prefix: 'end',
    table: 'endpoints',
    idColumn: 'endpoint_id',
    fields: ['name', 'base_url', 'protocol', 'categories', 'timeouts', 'allow_private', 'status'],
    json: ['timeouts'],
    merged: ['headers', 'timeouts'],
    columns: `t.master_key, t.wrapped_key, t.sealed_headers, ${healthColumns}`,
    joins: "LEFT JOIN model_health h ON h.subject = 'endpoint' AND h.subject_id = t.endpoint_id",
    parent: ofVendor,
    toView: (row) => ({
      headers: toHeadersView(() => openHeaders(row, masterKeys)),
      health: toHealthView(row),
    }),
    toInput: (row) => ({ headers: readHeadersOrNull(row, masterKeys) }),
    // a permission for one host does not hold for another
    complete: (merged, before, { allow_private }) =>
      readHost(merged) === readHost(before)
        ? merged
        : { ...merged, allow_private: allow_private ?? undefined },
    findErrors: async (sql, input, { id, before }) => [
      ...(isMoved(before, input) ? findBaseUrlErrors(input.base_url, allowsPrivate(input)) : []),
      ...(await findCategoryErrors(sql, input.categories, (index) => `/categories/${index}`)),
      ...(before ? await findModelErrors(sql, id, input) : []),
    ],
    toValues: (input, { id, scope: { vendor_id = '' }, before }) => ({
      allow_private: allowsPrivate(input),
      ...((input.headers || before === null) && sealHeaders(input.headers ?? {}, vendor_id, id, masterKeys)),
    }),
    dependents: {
      by: 'id',
      query: "SELECT 'model' AS kind, model_id AS id, name FROM models WHERE endpoint_id = $1 LIMIT 100",
    },
    guard: createSettingsGuard('endpoint', ['base_url', 'allow_private']),
    removeDependents: (sql, { id }) => resetHealth(sql, 'endpoint', id),
  })
}

const readHeadersOrNull = (row: Row, keys: MasterKeys): Record<string, string> | null => {
  try {
    return openHeaders(row, keys)
  } catch (error) {
    if (error instanceof MasonError) return null
    throw error
  }
}

const readHost = ({ base_url }: EndpointFields): string | null =>
  URL.canParse(base_url) ? new URL(base_url).host : null

const allowsPrivate = ({
  allow_private,
  base_url,
}: Pick<EndpointFields, 'allow_private' | 'base_url'>): boolean => allow_private ?? isPlainlyPrivate(base_url)

/** An unchanged URL, such as that of a setting, is not checked again. */
const isMoved = (before: Row | null, input: EndpointFields): boolean =>
  before?.base_url !== input.base_url || before.allow_private !== allowsPrivate(input)

type ServedModel = Pick<ModelInput, 'name' | 'category'> & { definition: Pick<FormatInput, 'request'> | null }

/** Changes that the models of this endpoint do not allow. */
const findModelErrors = async (
  sql: Sql,
  id: string,
  { categories, protocol }: EndpointFields,
): Promise<FieldError[]> => {
  const { rows } = await sql.query<ServedModel>(
    `SELECT m.name, m.category, f.definition FROM models m LEFT JOIN response_formats f ON f.format_id = m.response_format_id
     WHERE m.endpoint_id = $1 ORDER BY m.name`,
    [id],
  )
  const unserved = rows.find(({ category }) => categories.length > 0 && !categories.includes(category))
  const withoutTemplate = rows.find(({ definition }) => protocol === 'http' && definition?.request == null)
  return [
    ...(unserved
      ? [{ pointer: '/categories', detail: `model "${unserved.name}" is of category "${unserved.category}"` }]
      : []),
    ...(withoutTemplate
      ? [
          {
            pointer: '/protocol',
            detail: `model "${withoutTemplate.name}" has no response format with a request template, which http needs`,
          },
        ]
      : []),
  ]
}

/** The encrypted headers of an endpoint; null when it has none. */
type HeaderColumns = {
  master_key: string | null
  wrapped_key: Uint8Array | null
  sealed_headers: Uint8Array | null
}
type Headers = Record<string, string>

const toBinding = (vendor_id: string, row_id: string): SealBinding => ({
  purpose: 'headers',
  vendor_id,
  row_id,
})

/** Encrypts headers for the row of an endpoint. Throws `secret_unreadable`. */
export const sealHeaders = (
  headers: Headers,
  vendorId: string,
  id: string,
  keys: MasterKeys,
): HeaderColumns => {
  if (Object.keys(headers).length === 0) return { master_key: null, wrapped_key: null, sealed_headers: null }
  const { master_key, wrapped_key, sealed } = sealText(JSON.stringify(headers), toBinding(vendorId, id), keys)
  return { master_key, wrapped_key, sealed_headers: sealed }
}

/** Throws `secret_unreadable`. */
const openHeaders = (
  columns: HeaderColumns & { id: string; vendor_id: string },
  keys: MasterKeys,
): Headers => {
  const { master_key, wrapped_key, sealed_headers: sealed } = columns
  if (master_key === null || wrapped_key === null || sealed === null) return {}
  const row: SealedText = { master_key, wrapped_key, sealed }
  return JSON.parse(openSealedText(row, toBinding(columns.vendor_id, columns.id), keys).reveal()) as Headers
}

/** Without values that may contain the secret. */
const toHeadersView = (read: () => Headers): Headers => {
  try {
    const hide = (name: string, value: string) => (isPublicHeader(name) ? value : '…')
    return Object.fromEntries(Object.entries(read()).map(([name, value]) => [name, hide(name, value)]))
  } catch (error) {
    return { '…': toMasonError(error).message }
  }
}
