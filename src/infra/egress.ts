import type { Agent } from 'undici'
import type { AgentOptions, Resolve } from './egress/agent.ts'
import type { Answer, Egress } from './egress/port.ts'
import { type Hop, nextHop, stopped } from './egress/redirects.ts'
import { checkedUrl } from './egress/urls.ts'

const mostRedirects = 3

export type EgressOptions = {
  /** In tests: another way from names to addresses. */
  resolve?: Resolve
  connectTimeoutMs?: number
}

/** undici costs 0.2 s to load, so it is loaded with the first request. */
const loadAgents = async (options: EgressOptions) => {
  const [{ createAgent, refused }, { receiveAnswer }] = await Promise.all([
    import('./egress/agent.ts'),
    import('./egress/answer.ts'),
  ])
  const agentFor = (allowPrivate: boolean): Agent =>
    createAgent({ ...options, allowPrivate } satisfies AgentOptions)
  return { public: agentFor(false), private: agentFor(true), refused, receiveAnswer }
}

type Loaded = Awaited<ReturnType<typeof loadAgents>>

/** One request, redirects not followed. Only connections to addresses that were checked are made or used again. */
const send = async (
  loaded: Loaded,
  hop: Hop,
  beforeSend: () => void,
  signal: AbortSignal | null,
): Promise<Answer> => {
  const url = checkedUrl(hop.url, hop)
  if (!(url instanceof URL)) throw loaded.refused(shownHost(hop.url), url.detail)
  const agent = loaded[hop.allowPrivate ? 'private' : 'public']
  const request = {
    origin: url.origin,
    path: url.pathname + url.search,
    method: hop.method as 'GET',
    headers: hop.headers,
    body: hop.body,
  }
  return loaded.receiveAnswer((handler) => agent.dispatch(request, handler), beforeSend, signal)
}

/** Enough of a refused address for people to know it again, and nothing of a password or a query. */
const shownHost = (url: string): string => {
  const shown = URL.canParse(url) ? new URL(url).host : url.split(/[/?#]/, 3)[2]?.split('@').at(-1)
  return shown?.slice(0, 200) || 'this address'
}

/**
 * The only way out to addresses that came from data: no proxies of the environment, no second look-up of a name, no
 * redirect unchecked. An address that is set apart (link-local, metadata, multicast, unspecified) is never reached, not
 * even as a literal with `allowPrivate`. Bodies are the reader's to cap, clocks the caller's to keep.
 */
export const openEgress = (options: EgressOptions = {}): Egress => {
  let loading: Promise<Loaded> | null = null
  let closed = false
  const load = (): Promise<Loaded> => {
    loading ??= loadAgents(options)
    return loading
  }

  return {
    prepare: load,
    async request(url, init) {
      const { signal = null, maxRedirects = mostRedirects, beforeSend = () => {} } = init
      signal?.throwIfAborted()
      if (closed) throw new Error('the way out is closed')
      const loaded = await load()
      const most = Math.min(maxRedirects, mostRedirects)
      let hop: Hop = {
        url,
        method: (init.method ?? 'GET').toUpperCase(),
        headers: { 'user-agent': 'mason', ...init.headers },
        body: init.body ?? null,
        allowPrivate: init.allowPrivate ?? false,
      }
      for (let followed = 0; ; followed += 1) {
        const answer = await send(loaded, hop, beforeSend, signal)
        const next = most === 0 ? null : nextHop(hop, answer.status, answer.headers.get('location'))
        if (next === null) return answer
        answer.body.cancel()
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
