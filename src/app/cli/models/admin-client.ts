import { createHttp, type Http, type HttpQuery } from '../../../client/http.ts'
import type { Config, Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import type { EndpointView, KeyView, ModelView, VendorView } from '../../../models/schemas/catalog.ts'
import type { RouteView } from '../../../models/schemas/routing.ts'
import { UsageError } from '../errors.ts'
import { findTarget, readTargetConfig, withLockRemedy } from '../gateway.ts'
import { serverRemedies } from '../http-gateway.ts'
import { createNoteLog } from '../log.ts'

/** The options that choose a server; without `url` the command uses a runtime in this process. */
export type AdminTarget = { url?: string; token?: string }

type AdminConnection = { http: Http; close(): Promise<void> }

const tokenRemedy = 'pass the admin token of that server (its MASON_ADMIN_TOKEN) with --token or MASON_TOKEN'

/** Opens the admin API that flags and settings choose, and closes it when `work` has ended. */
export const withAdminClient = async (
  flags: AdminTarget,
  env: Environment,
  scrubber: Scrubber,
  work: (client: AdminClient) => Promise<number>,
): Promise<number> => {
  const config = readTargetConfig(flags, env, 'models')
  const { url, token } = await findTarget(config)
  if (token) scrubber.add(token)
  const { http, close } = url === null ? await openInProcess(config, scrubber) : openRemote(url, token)
  try {
    return await work(createAdminClient(http))
  } finally {
    await close()
  }
}

const createAdminClient = (http: Http) => {
  const call = (
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    json?: unknown,
    query: HttpQuery = {},
  ): Promise<unknown> => http.json(method, path, { json, query, timeoutMs: requestTimeoutMs })
  return {
    call,
    /** A response that is no JSON, as it is. */
    text: async (path: string, query: HttpQuery = {}): Promise<string> =>
      (await http.call('GET', path, { query, repeatable: true })).text(),
    /** All pages of a list. */
    async listAll<Item>(path: string): Promise<Item[]> {
      const items: Item[] = []
      let cursor: string | null | undefined
      while (cursor !== null) {
        const query = { limit: 200, cursor }
        const page = (await call('GET', path, undefined, query)) as {
          data: Item[]
          next_cursor: string | null
        }
        items.push(...page.data)
        cursor = page.next_cursor
      }
      return items
    },
  }
}

/** The admin API of a server or of a runtime in this process, with the same paths, checks and errors. */
export type AdminClient = ReturnType<typeof createAdminClient>

/** A test of a model may take as long as its endpoint allows. */
const requestTimeoutMs = 3_700_000

const openRemote = (url: string, token: string | null): AdminConnection => ({
  http: createHttp({ url, token, remedies: serverRemedies(tokenRemedy) }),
  close: async () => {},
})

/** The routes of the server, called without a port. */
const openInProcess = async (config: Config, scrubber: Scrubber): Promise<AdminConnection> => {
  const log = createNoteLog(config.logLevel, (line) => process.stderr.write(`${line}\n`), scrubber)
  const [{ openRuntime }, { createApp }] = await Promise.all([
    import('../../open-runtime.ts'),
    import('../../http/app.ts'),
  ])
  const runtime = await withLockRemedy(
    openRuntime(config, { log, scrubber }),
    'if that is `mason serve`, add --url http://127.0.0.1:8080 and --token with the admin token from DATA_DIR; else stop that process',
  )
  const app = await createApp({ runtime, auth: 'off' })
  const http = createHttp({
    url: 'http://in-this-process',
    async fetch(url, { method, headers, body } = {}) {
      const { pathname, search } = new URL(url as string)
      const response = await app.inject({
        method: method as 'GET',
        url: pathname + search,
        headers: headers as Record<string, string>,
        ...(typeof body === 'string' && { payload: body }),
      })
      return new Response(response.payload, {
        status: response.statusCode,
        headers: response.headers as Record<string, string>,
      })
    },
  })
  return {
    http,
    async close() {
      await app.close()
      await runtime.close(10_000)
    },
  }
}

/** The path of a vendor in the admin API. */
export const toVendorPath = (id: string): string => `/admin/v1/vendors/${encodeURIComponent(id)}`

/** Reads all vendors with their keys, endpoints and models. */
export const fetchVendorListings = async (client: AdminClient) => {
  const vendors = await client.listAll<VendorView>('/admin/v1/vendors')
  return Promise.all(
    vendors.map(async (vendor) => {
      const [keys, endpoints, models] = await Promise.all([
        client.listAll<KeyView>(`${toVendorPath(vendor.id)}/keys`),
        client.listAll<EndpointView>(`${toVendorPath(vendor.id)}/endpoints`),
        client.listAll<ModelView>(`${toVendorPath(vendor.id)}/models`),
      ])
      return { vendor, keys, endpoints, models }
    }),
  )
}

/** A vendor with its keys, endpoints and models. */
export type VendorListing = Awaited<ReturnType<typeof fetchVendorListings>>[number]

/** Reads all routes. */
export const fetchRoutes = (client: AdminClient): Promise<RouteView[]> =>
  client.listAll<RouteView>('/admin/v1/routes')

/** The model of this alias; throws a UsageError that lists the aliases when there is none. */
export const findRegistryModel = async (client: AdminClient, alias: string): Promise<ModelView> => {
  const models = (await fetchVendorListings(client)).flatMap((listing) => listing.models)
  const model = models.find(({ name }) => name === alias)
  if (model) return model
  const names = models.map(({ name }) => name)
  throw new UsageError(
    `model ${JSON.stringify(alias)} does not exist`,
    names.length > 0 ? `use one of: ${names.slice(0, 20).join(', ')}` : 'add one with mason models add',
  )
}
