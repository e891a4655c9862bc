import type { Environment } from '../../infra/config.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import type { KeyView } from '../../state/registry/catalog.ts'
import type { RouteView } from '../../state/registry/routing.ts'
import { exitCodes } from '../failure.ts'
import { oneLine } from '../terminal.ts'
import { type Target, withDesk } from './desk.ts'
import { readRoutes, readVendors } from './registry.ts'

/** `mason models list`: the aliases, whose they are, what they serve, and how their keys are. */
export const listModels = (
  flags: Target & { json?: boolean },
  env: Environment,
  scrubber: Scrubber,
): Promise<number> =>
  withDesk(flags, env, scrubber, async (desk) => {
    const [vendors, routes] = await Promise.all([readVendors(desk), readRoutes(desk)])
    const models = vendors
      .flatMap(({ vendor, keys, endpoints, models }) =>
        models.map((model) => ({
          name: model.name,
          vendor: vendor.name,
          category: model.category,
          upstream_name: model.upstream_name,
          status: isOff(
            model,
            vendor,
            endpoints.find(({ id }) => id === model.endpoint_id),
          )
            ? 'disabled'
            : 'active',
          routes: routes.filter((route) => route.models.some((one) => one.model === model.name)).map(nameOf),
          keys: keys.map(({ label, secret, status, health }) => ({
            label,
            secret,
            health: status === 'active' ? health.state : 'disabled',
            until: health.until,
            last_error: health.last_error,
          })),
        })),
      )
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const rows = models.map(({ name, vendor, category, status, routes, keys }) => [
      status === 'active' ? name : `${name} (disabled)`,
      vendor,
      category,
      routes.join(', ') || '-',
      healthText(keys),
    ])
    const text = flags.json
      ? JSON.stringify({ models }, null, 2)
      : rows.length === 0
        ? 'no models; add one with mason models add'
        : table([['ALIAS', 'VENDOR', 'CATEGORY', 'ROUTES', 'KEYS'], ...rows])
    process.stdout.write(`${scrubber.text(text)}\n`)
    return exitCodes.done
  })

const isOff = (...parts: ({ status: 'active' | 'disabled' } | undefined)[]): boolean =>
  parts.some((part) => part?.status === 'disabled')

const nameOf = ({ role, category }: RouteView): string => role ?? `category ${category}`

/** 2 healthy, 1 cooling. */
const healthText = (keys: readonly { health: KeyView['health']['state'] }[]): string => {
  const counts = new Map<string, number>()
  for (const { health } of keys) counts.set(health, (counts.get(health) ?? 0) + 1)
  return [...counts].map(([state, count]) => `${count} ${state}`).join(', ') || 'none'
}

const table = (rows: readonly (readonly string[])[]): string => {
  const clean = rows.map((row) => row.map(oneLine))
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
