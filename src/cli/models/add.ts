import type { Environment } from '../../infra/config.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import type { EndpointView, KeyFound, KeyView, ModelView, VendorView } from '../../state/registry/catalog.ts'
import type { FormatView } from '../../state/registry/response-format.ts'
import { exitCodes, UsageError } from '../failure.ts'
import { type Desk, type Target, withDesk } from './desk.ts'
import { type Listed, readRoutes, readVendors, vendorPath } from './registry.ts'
import { readSecret } from './secret.ts'

export type AddFlags = Target & {
  vendor: string
  baseUrl: string
  name: string
  upstream?: string
  category: string
  format?: string
  /** False: --no-key. */
  key: boolean
  keyEnv?: string
  role?: string[]
}

/**
 * `mason models add`: vendor, key, endpoint, model and routes in one go. What is there already is used, so that a call
 * which failed half-way can be repeated as it was. Says of each thing whether it was made, also when a later one fails.
 */
export const addModel = async (flags: AddFlags, env: Environment, scrubber: Scrubber): Promise<number> => {
  const secret = flags.key ? await readSecret(flags.keyEnv, env) : null
  if (secret !== null) scrubber.add(secret)
  return withDesk(flags, env, scrubber, async (desk) => {
    const vendors = await readVendors(desk)
    const format = flags.format === undefined ? null : await findFormat(desk, flags.format)
    if (vendors.some(({ models }) => models.some(({ name }) => name === flags.name)))
      throw new UsageError(`there is a model "${flags.name}" already`, 'choose another alias with --name')
    const made: string[] = []
    const tell = (line: string): void => {
      process.stdout.write(`${scrubber.text(line)}\n`)
    }
    const make = async <View>(
      what: string,
      path: string,
      body: unknown,
      method: 'POST' | 'PATCH' = 'POST',
    ) => {
      const view = (await desk.call(method, path, body)) as View
      made.push(what)
      tell(`made   ${what}`)
      return view
    }
    try {
      await addAll({ flags, secret, format, vendors, desk, make, tell })
    } catch (error) {
      if (made.length > 0)
        tell(
          `FAULT  stopped here; what was made stays: ${made.join(', ')}\n       -> mend what is said below and call the same again: it goes on from there`,
        )
      throw error
    }
    tell(`\ntry it: mason models test ${flags.name}`)
    return exitCodes.done
  })
}

type Work = {
  flags: AddFlags
  secret: string | null
  format: FormatView | null
  vendors: readonly Listed[]
  desk: Desk
  make<View>(what: string, path: string, body: unknown, method?: 'POST' | 'PATCH'): Promise<View>
  tell(line: string): void
}

const addAll = async (work: Work): Promise<void> => {
  const { flags, secret, format, vendors, make, tell } = work
  const known = vendors.find(({ vendor }) => vendor.name === flags.vendor)
  if (known) tell(`there  vendor "${flags.vendor}"`)
  const vendor =
    known?.vendor ??
    (await make<VendorView>(`vendor "${flags.vendor}"`, '/admin/v1/vendors', { name: flags.vendor }))
  const path = vendorPath(vendor.id)
  if (secret !== null) await addKey(work, known?.keys ?? [], path, secret)
  const endpoint = await addEndpoint(work, known?.endpoints ?? [], path)
  await make<ModelView>(`model "${flags.name}"`, `${path}/models`, {
    name: flags.name,
    upstream_name: flags.upstream ?? flags.name,
    category: flags.category,
    endpoint_id: endpoint.id,
    ...(format && { response_format_id: format.id }),
  })
  for (const role of new Set(flags.role)) await addToRoute(work, role)
}

const defaultLabel = 'default'

/** Only the server can tell whether it has this secret; another one comes in under a label of its own. */
const addKey = async ({ desk, make, tell }: Work, keys: readonly KeyView[], path: string, secret: string) => {
  const { key: same } = (await desk.call('POST', `${path}/keys/find`, { secret })) as KeyFound
  if (same) return tell(`there  key "${same.label}" ${same.secret}`)
  const labels = new Set(keys.map(({ label }) => label))
  let label = defaultLabel
  for (let n = 2; labels.has(label); n++) label = `${defaultLabel} ${n}`
  await make<KeyView>(`key "${label}"`, `${path}/keys`, { label, secret })
}

const addEndpoint = async (
  { flags, make, tell }: Work,
  endpoints: readonly EndpointView[],
  path: string,
): Promise<EndpointView> => {
  const protocol = flags.format === undefined ? 'openai' : 'http'
  const serves = (one: EndpointView): boolean =>
    one.categories.length === 0 || one.categories.includes(flags.category)
  const same = endpoints.find(
    (one) => one.base_url === flags.baseUrl && one.protocol === protocol && serves(one),
  )
  if (same) {
    tell(`there  endpoint "${same.name}"`)
    return same
  }
  const names = new Set(endpoints.map(({ name }) => name))
  let name: string = protocol
  for (let n = 2; names.has(name); n++) name = `${protocol} ${n}`
  return make(`endpoint "${name}"`, `${path}/endpoints`, { name, base_url: flags.baseUrl, protocol })
}

/** As the last of the route's models. */
const addToRoute = async ({ flags, desk, make }: Work, role: string): Promise<void> => {
  const route = (await readRoutes(desk)).find((one) => one.role === role)
  const models = [...(route?.models ?? []), { model: flags.name }]
  const place = route ? `, number ${models.length} of it` : ''
  const what = `route of role "${role}"${place}`
  if (route) await make(what, `/admin/v1/routes/${encodeURIComponent(route.id)}`, { models }, 'PATCH')
  else await make(what, '/admin/v1/routes', { role, models })
}

const findFormat = async (desk: Desk, name: string): Promise<FormatView> => {
  const formats = await desk.all<FormatView>('/admin/v1/response-formats')
  const format = formats.find((one) => one.name === name)
  if (format) return format
  throw new UsageError(
    `there is no response format ${JSON.stringify(name)}`,
    `there are: ${formats.map((one) => one.name).join(', ')}`,
  )
}
