import type { Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import type { KeyView, ModelView } from '../../../models/schemas/catalog.ts'
import type { RouteView } from '../../../models/schemas/routing.ts'
import { resolveCommandName } from '../command-name.ts'
import { exitCodes } from '../errors.ts'
import { toOneLine } from '../terminal.ts'
import { type AdminTarget, fetchRoutes, fetchVendorListings, withAdminClient } from './admin-client.ts'

/** `mason models list`: prints aliases with vendor, category, routes and the health of models and keys. */
export const listModels = (
  flags: AdminTarget & { json?: boolean },
  env: Environment,
  scrubber: Scrubber,
): Promise<number> =>
  withAdminClient(flags, env, scrubber, async (client) => {
    const [vendors, routes] = await Promise.all([fetchVendorListings(client), fetchRoutes(client)])
    const models = vendors
      .flatMap(({ vendor, keys, endpoints, models }) =>
        models.map((model) => ({
          name: model.name,
          vendor: vendor.name,
          category: model.category,
          upstream_name: model.upstream_name,
          status: [model, vendor, endpoints.find(({ id }) => id === model.endpoint_id)].some(isDisabled)
            ? 'disabled'
            : 'active',
          endpoint: toHealth(endpoints.find(({ id }) => id === model.endpoint_id)),
          health: toHealth(model),
          routes: routes
            .filter((route) => route.models.some((one) => one.model === model.name))
            .map(formatRouteName),
          keys: keys.map(({ label, secret, status, health }) => ({
            label,
            secret,
            health: status === 'active' ? (findWithModel(health, model) ?? health.state) : 'disabled',
            until: health.until,
            last_error: health.last_error,
            models: health.models,
          })),
        })),
      )
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const rows = models.map(({ name, vendor, category, status, routes, keys, health, endpoint }) => [
      status === 'active' ? name : `${name} (disabled)`,
      vendor,
      category,
      routes.join(', ') || '-',
      formatModelHealth(health, endpoint),
      formatKeyHealth(keys),
    ])
    const text = flags.json
      ? JSON.stringify({ models }, null, 2)
      : rows.length === 0
        ? `no models; add one with ${resolveCommandName()} models add`
        : formatTable([['ALIAS', 'VENDOR', 'CATEGORY', 'ROUTES', 'HEALTH', 'KEYS'], ...rows])
    process.stdout.write(`${scrubber.text(text)}\n`)
    return exitCodes.done
  })

const isDisabled = (part: { status: 'active' | 'disabled' } | undefined): boolean =>
  part?.status === 'disabled'

const formatRouteName = ({ role, category }: RouteView): string => role ?? `category ${category}`

type ModelHealthView = Pick<ModelView['health'], 'state' | 'until' | 'last_error' | 'closed_for'>

const toHealth = (part: Pick<ModelView, 'health'> | undefined): ModelHealthView | null =>
  part
    ? {
        state: part.health.state,
        until: part.health.until,
        last_error: part.health.last_error,
        closed_for: part.health.closed_for,
      }
    : null

/** The state of a healthy key with one model. */
const findWithModel = ({ state, models }: KeyView['health'], { name }: ModelView): string | undefined =>
  state === 'healthy' ? models.find(({ model }) => model === name)?.state : undefined

/** healthy; cooling for some; endpoint cooling. */
const formatModelHealth = (model: ModelHealthView | null, endpoint: ModelHealthView | null): string => {
  const [name, health] = endpoint && endpoint.state !== 'healthy' ? ['endpoint ', endpoint] : ['', model]
  return `${name}${health?.state ?? '-'}${health?.closed_for === 'some' ? ' for some' : ''}`
}

/** 2 healthy, 1 cooling. */
const formatKeyHealth = (keys: readonly { health: string }[]): string => {
  const counts = new Map<string, number>()
  for (const { health } of keys) counts.set(health, (counts.get(health) ?? 0) + 1)
  return [...counts].map(([state, count]) => `${count} ${state}`).join(', ') || 'none'
}

/** Rows of texts in columns that are as wide as their longest cell. */
export const formatTable = (rows: readonly (readonly string[])[]): string => {
  const clean = rows.map((row) => row.map(toOneLine))
  const widths = (clean[0] ?? []).map((_, column) =>
    Math.max(...clean.map((row) => (row[column] ?? '').length)),
  )
  return clean
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
