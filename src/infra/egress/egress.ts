import { MasonError } from '../../state/errors.ts'
import type { Egress, EgressResponse } from './egress-port.ts'
import type { HttpAgentOptions } from './http-agent.ts'
import { parseCheckedUrl } from './urls.ts'

const redirectLimit = 3

/** Options of `openEgress`, used by tests. */
export type EgressOptions = Omit<HttpAgentOptions, 'allowPrivate'>

/** undici costs 0.2 s to load, so it is loaded with the first request. */
const loadAgents = async (options: EgressOptions) => {
  const [{ createHttpAgent, createEgressRefusedError }, { receiveResponse }] = await Promise.all([
    import('./http-agent.ts'),
    import('./response.ts'),
  ])
  return {
    public: createHttpAgent({ ...options, allowPrivate: false }),
    private: createHttpAgent({ ...options, allowPrivate: true }),
    createEgressRefusedError,
    receiveResponse,
  }
}

type LoadedAgents = Awaited<ReturnType<typeof loadAgents>>

/** Sends one request without following redirects. It opens and reuses only connections to checked addresses. */
const sendOnce = async (
  loaded: LoadedAgents,
  hop: EgressHop,
  beforeSend: () => void,
  signal: AbortSignal | null,
): Promise<EgressResponse> => {
  const url = parseCheckedUrl(hop.url, hop)
  if (typeof url === 'string') throw loaded.createEgressRefusedError(redactHost(hop.url), url)
  const agent = loaded[hop.allowPrivate ? 'private' : 'public']
  const request = {
    origin: url.origin,
    path: url.pathname + url.search,
    method: hop.method as 'GET',
    headers: hop.headers,
    body: hop.body,
  }
  return loaded.receiveResponse((handler) => agent.dispatch(request, handler), beforeSend, signal)
}

/** The host of a refused address for the error message, without password and query. */
const redactHost = (url: string): string => {
  const host = URL.canParse(url) ? new URL(url).host : url.split(/[/?#]/, 3)[2]?.split('@').at(-1)
  return host?.slice(0, 200) || 'this address'
}

/**
 * Opens connections to addresses that came from data: without proxies of the environment, without a second lookup of a
 * name and without unchecked redirects. A special address (link-local, metadata, multicast, unspecified) is never reached,
 * not even with `allowPrivate`. The caller limits sizes and times.
 */
export const openEgress = (options: EgressOptions = {}): Egress => {
  let loading: Promise<LoadedAgents> | null = null
  let closed = false
  const load = (): Promise<LoadedAgents> => {
    loading ??= loadAgents(options)
    return loading
  }

  return {
    prepare: load,
    async request(url, init) {
      const { signal = null, maxRedirects = redirectLimit, beforeSend = () => {} } = init
      if (closed) throw new Error('egress is closed')
      const loaded = await load()
      const limit = Math.min(maxRedirects, redirectLimit)
      let hop: EgressHop = {
        url,
        method: (init.method ?? 'GET').toUpperCase(),
        headers: { 'user-agent': 'mason', ...init.headers },
        body: init.body ?? null,
        allowPrivate: init.allowPrivate ?? false,
      }
      for (let followed = 0; ; followed += 1) {
        // it may have come while the modules were loaded or the hop before was answered
        signal?.throwIfAborted()
        const response = await sendOnce(loaded, hop, beforeSend, signal)
        const next =
          limit === 0 ? null : resolveRedirect(hop, response.status, response.headers.get('location'))
        if (next === null) return response
        response.body.cancel()
        if (followed === limit) throw createRedirectError(new URL(hop.url), `more than ${limit} times`)
        hop = next
      }
    },
    async [Symbol.asyncDispose]() {
      closed = true
      if (loading === null) return
      const loaded = await loading
      await Promise.all([loaded.public.destroy(), loaded.private.destroy()])
    },
  }
}

type EgressHop = {
  url: string
  method: string
  headers: Record<string, string>
  body: string | Uint8Array | null
  allowPrivate: boolean
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])
/** The headers that are sent to another origin; any other may hold a secret. */
const crossOriginHeaders = /^(accept|accept-language|content-type|user-agent)$/i
const bodyHeaders = /^content-/i

/**
 * The request that follows a redirect, as fetch defines it (https://fetch.spec.whatwg.org/#http-redirect-fetch), or null
 * for any other response. Another origin gets no headers that could hold a secret and no permission for private addresses.
 */
export const resolveRedirect = (
  hop: EgressHop,
  status: number,
  location: string | null,
): EgressHop | null => {
  if (location === null || !redirectStatuses.has(status)) return null
  const from = new URL(hop.url)
  if (!URL.canParse(location, hop.url)) throw createRedirectError(from, 'to an invalid address')
  const to = new URL(location, hop.url)
  if (from.protocol === 'https:' && to.protocol !== 'https:')
    throw createRedirectError(from, 'from https to http')
  const becomesGet = (status === 303 && hop.method !== 'HEAD') || (status < 303 && hop.method === 'POST')
  const isSameOrigin = to.origin === from.origin
  const headers = Object.entries(hop.headers).filter(
    ([name]) => (isSameOrigin || crossOriginHeaders.test(name)) && !(becomesGet && bodyHeaders.test(name)),
  )
  return {
    // as it was written, not as it was parsed, so that an unusual spelling of a host is refused here too
    url: /^[a-z][a-z0-9+.-]*:|^[/\\]{2}/i.test(location) ? toAbsolute(location, from) : to.href,
    method: becomesGet ? 'GET' : hop.method,
    headers: Object.fromEntries(headers),
    body: becomesGet ? null : hop.body,
    allowPrivate: hop.allowPrivate && isSameOrigin,
  }
}

const toAbsolute = (location: string, from: URL): string =>
  /^[/\\]{2}/.test(location) ? from.protocol + location : location

const createRedirectError = (from: URL, how: string): MasonError =>
  new MasonError('egress_refused', `${from.host} redirects ${how}`, {
    remedy: 'set the endpoint to the final address, if that one is intended',
    detail: { host: from.host },
  })
