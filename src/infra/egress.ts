import type { Agent } from 'undici'
import type { AgentOptions, Resolve } from './egress/agent.ts'
import { type Hop, nextHop, stopped } from './egress/redirects.ts'
import { addressFaults } from './egress/urls.ts'
import type { Egress } from './models/ports.ts'

const mostRedirects = 3

export type EgressOptions = {
  /** In tests: another way from names to addresses. */
  resolve?: Resolve
  connectTimeoutMs?: number
}

/** undici costs 0.2 s to load, so it is loaded with the first request. */
const loadAgents = async (options: EgressOptions) => {
  const [{ createAgent, refused }, { responseOf }] = await Promise.all([
    import('./egress/agent.ts'),
    import('./egress/body.ts'),
  ])
  const agentFor = (allowPrivate: boolean): Agent =>
    createAgent({ ...options, allowPrivate } satisfies AgentOptions)
  return { public: agentFor(false), private: agentFor(true), refused, responseOf }
}

type Loaded = Awaited<ReturnType<typeof loadAgents>>

/** One request, redirects not followed. Only connections to addresses that were checked are made or used again. */
const send = async (loaded: Loaded, hop: Hop, signal: AbortSignal | null): Promise<Response> => {
  const fault = addressFaults(hop.url, hop)
  if (fault) throw loaded.refused(shownHost(hop.url), fault.detail)
  const url = new URL(hop.url)
  const received = loaded[hop.allowPrivate ? 'private' : 'public'].request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: hop.method as 'GET',
    headers: hop.headers,
    body: hop.body,
    signal,
  })
  return loaded.responseOf(await orAborted(received, signal))
}

/** undici looks at the signal of a request only once there is a connection. */
const orAborted = async <T>(promise: Promise<T>, signal: AbortSignal | null): Promise<T> => {
  if (signal === null) return promise
  promise.catch(() => undefined)
  let stop = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop)
  })
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', stop))
}

/** Enough of a refused address for people to know it again, and nothing of a password or a query. */
const shownHost = (url: string): string => {
  const shown = URL.canParse(url) ? new URL(url).host : url.split(/[/?#]/, 3)[2]?.split('@').at(-1)
  return shown?.slice(0, 200) || 'this address'
}

/**
 * The only way out to addresses that came from data: no proxies of the environment, no second look-up of a name, no
 * redirect unchecked. An address that is set apart (link-local, metadata, multicast, unspecified) is never reached, not
 * even as a literal with `allowPrivate`. Bodies are the reader's to cap (`cappedBody`), clocks the caller's to keep.
 */
export const openEgress = (options: EgressOptions = {}): Egress => {
  let loading: Promise<Loaded> | null = null
  let closed = false

  return {
    async fetch(url, init) {
      const { signal = null, maxRedirects = mostRedirects } = init
      signal?.throwIfAborted()
      if (closed) throw new Error('the way out is closed')
      loading ??= loadAgents(options)
      const loaded = await loading
      const most = Math.min(maxRedirects, mostRedirects)
      let hop: Hop = {
        url,
        method: (init.method ?? 'GET').toUpperCase(),
        headers: { 'user-agent': 'mason', ...init.headers },
        body: init.body ?? null,
        allowPrivate: init.allowPrivate ?? false,
      }
      for (let followed = 0; ; followed += 1) {
        const response = await send(loaded, hop, signal)
        const next = most === 0 ? null : nextHop(hop, response.status, response.headers.get('location'))
        if (next === null) return response
        response.body?.cancel().catch(() => undefined)
        if (followed === most) throw stopped(new URL(hop.url), `more than ${most} times`)
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
