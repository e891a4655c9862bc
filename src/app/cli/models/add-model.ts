import type { Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import type { EndpointView, KeyMatch, KeyView, VendorView } from '../../../models/schemas/catalog.ts'
import type { FormatView } from '../../../models/schemas/response-format.ts'
import { resolveCommandName } from '../command-name.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { readHidden } from '../hidden-input.ts'
import {
  type AdminClient,
  type AdminTarget,
  fetchRoutes,
  fetchVendorListings,
  toVendorPath,
  type VendorListing,
  withAdminClient,
} from './admin-client.ts'

/** The options of `mason models add`. */
export type AddModelFlags = AdminTarget & {
  vendor: string
  baseUrl: string
  name: string
  upstream?: string
  category: string
  format?: string
  /** False with --no-key. */
  key: boolean
  keyEnv?: string
  role?: string[]
}

/**
 * `mason models add`: creates vendor, key, endpoint, model and routes in one call. It uses what already exists, so a call
 * that failed halfway can be repeated unchanged. It prints what it created, also when a later step fails.
 */
export const addModel = async (
  flags: AddModelFlags,
  env: Environment,
  scrubber: Scrubber,
): Promise<number> => {
  const secret = flags.key ? await readSecretInput(flags.keyEnv, env) : null
  if (secret !== null) scrubber.add(secret)
  return withAdminClient(flags, env, scrubber, async (client) => {
    const vendors = await fetchVendorListings(client)
    const format = flags.format === undefined ? null : await findFormat(client, flags.format)
    if (vendors.some(({ models }) => models.some(({ name }) => name === flags.name)))
      throw new UsageError(`model "${flags.name}" already exists`, 'choose another alias with --name')
    const created: string[] = []
    const print = (line: string): void => {
      process.stdout.write(`${scrubber.text(line)}\n`)
    }
    const create = async <View>(
      what: string,
      path: string,
      body: unknown,
      method: 'POST' | 'PATCH' = 'POST',
    ) => {
      const view = (await client.call(method, path, body)) as View
      created.push(what)
      print(`created  ${what}`)
      return view
    }
    try {
      await addAll({ flags, secret, format, vendors, client, create, print })
    } catch (error) {
      if (created.length > 0)
        print(
          `ERROR    stopped; these were created and stay: ${created.join(', ')}\n         -> fix the error below and repeat the command: it continues from here`,
        )
      throw error
    }
    print(`\nto test it: ${resolveCommandName()} models test ${flags.name}`)
    return exitCodes.done
  })
}

type AddModelContext = {
  flags: AddModelFlags
  secret: string | null
  format: FormatView | null
  vendors: readonly VendorListing[]
  client: AdminClient
  create<View>(what: string, path: string, body: unknown, method?: 'POST' | 'PATCH'): Promise<View>
  print(line: string): void
}

const addAll = async (work: AddModelContext): Promise<void> => {
  const { flags, secret, format, vendors, create, print } = work
  const existing = vendors.find(({ vendor }) => vendor.name === flags.vendor)
  if (existing) print(`exists   vendor "${flags.vendor}"`)
  const vendor =
    existing?.vendor ??
    (await create<VendorView>(`vendor "${flags.vendor}"`, '/admin/v1/vendors', { name: flags.vendor }))
  const path = toVendorPath(vendor.id)
  if (secret !== null) await addKey(work, existing?.keys ?? [], path, secret)
  const endpoint = await addEndpoint(work, existing?.endpoints ?? [], path)
  await create(`model "${flags.name}"`, `${path}/models`, {
    name: flags.name,
    upstream_name: flags.upstream ?? flags.name,
    category: flags.category,
    endpoint_id: endpoint.id,
    ...(format && { response_format_id: format.id }),
  })
  for (const role of new Set(flags.role)) await addToRoute(work, role)
}

const defaultLabel = 'default'

/** Only the server knows whether it has this secret. Another secret gets a label of its own. */
const addKey = async (
  { client, create, print }: AddModelContext,
  keys: readonly KeyView[],
  path: string,
  secret: string,
) => {
  const { key: same } = (await client.call('POST', `${path}/keys/find`, { secret })) as KeyMatch
  if (same) return print(`exists   key "${same.label}" ${same.secret}`)
  const labels = new Set(keys.map((key) => key.label))
  let label = defaultLabel
  for (let n = 2; labels.has(label); n++) label = `${defaultLabel} ${n}`
  await create(`key "${label}"`, `${path}/keys`, { label, secret })
}

const addEndpoint = async (
  { flags, create, print }: AddModelContext,
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
    print(`exists   endpoint "${same.name}"`)
    return same
  }
  const names = new Set(endpoints.map((one) => one.name))
  let name: string = protocol
  for (let n = 2; names.has(name); n++) name = `${protocol} ${n}`
  return create(`endpoint "${name}"`, `${path}/endpoints`, { name, base_url: flags.baseUrl, protocol })
}

/** Appends the model to the route of a role. */
const addToRoute = async ({ flags, client, create }: AddModelContext, role: string): Promise<void> => {
  const route = (await fetchRoutes(client)).find((one) => one.role === role)
  const models = [...(route?.models ?? []), { model: flags.name }]
  const position = route ? ` (position ${models.length})` : ''
  const what = `route of role "${role}"${position}`
  if (route) await create(what, `/admin/v1/routes/${encodeURIComponent(route.id)}`, { models }, 'PATCH')
  else await create(what, '/admin/v1/routes', { role, models })
}

const findFormat = async (client: AdminClient, name: string): Promise<FormatView> => {
  const formats = await client.listAll<FormatView>('/admin/v1/response-formats')
  const format = formats.find((one) => one.name === name)
  if (format) return format
  throw new UsageError(
    `response format ${JSON.stringify(name)} does not exist`,
    `use one of: ${formats.map((one) => one.name).join(', ')}`,
  )
}

const secretRemedy = 'name the variable that holds it with --key-env NAME, pipe it in, or pass --no-key'

/** Reads a vendor's key from the named variable, a hidden prompt or stdin. Never an argument: other users can see those. */
const readSecretInput = async (variable: string | undefined, env: Environment): Promise<string> => {
  if (variable === undefined) {
    const secret = await readHidden('key', 'stopped; nothing was created')
    if (secret === '') throw new UsageError('the key is empty', secretRemedy)
    return secret
  }
  const secret = env[variable]?.trim()
  // the message does not repeat the name, because it may be the key itself
  if (!secret) throw new UsageError('the variable named by --key-env is not set', secretRemedy)
  return secret
}
