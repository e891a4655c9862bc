import { MasonError } from '../../state/errors.ts'

export type Hop = {
  url: string
  method: string
  headers: Record<string, string>
  body: string | Uint8Array | null
  allowPrivate: boolean
}

const redirects = new Set([301, 302, 303, 307, 308])
/** What another origin gets to see of the headers; any other may hold a secret. */
const harmless = /^(accept|accept-language|content-type|user-agent)$/i
const ofBody = /^content-/i

const without = (headers: Record<string, string>, drop: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !drop(name)))

/**
 * Where a redirect leads, as fetch has it (https://fetch.spec.whatwg.org/#http-redirect-fetch), or null for any other
 * answer. Another origin gets no headers that could hold a secret, and nothing of the leave to reach private addresses.
 */
export const nextHop = (hop: Hop, status: number, location: string | null): Hop | null => {
  if (location === null || !redirects.has(status)) return null
  const from = new URL(hop.url)
  if (!URL.canParse(location, hop.url)) throw stopped(from, 'to what is no address')
  const to = new URL(location, hop.url)
  if (from.protocol === 'https:' && to.protocol !== 'https:') throw stopped(from, 'from https to http')
  const becomesGet = (status === 303 && hop.method !== 'HEAD') || (status < 303 && hop.method === 'POST')
  const headers =
    to.origin === from.origin ? hop.headers : without(hop.headers, (name) => !harmless.test(name))
  return {
    // as it was written, not as it was read: an odd spelling of a host is refused like any other
    url: /^[a-z][a-z0-9+.-]*:|^[/\\]{2}/i.test(location) ? absolute(location, from) : to.href,
    method: becomesGet ? 'GET' : hop.method,
    headers: becomesGet ? without(headers, (name) => ofBody.test(name)) : headers,
    body: becomesGet ? null : hop.body,
    allowPrivate: hop.allowPrivate && to.origin === from.origin,
  }
}

const absolute = (location: string, from: URL): string =>
  /^[/\\]{2}/.test(location) ? from.protocol + location : location

export const stopped = (from: URL, how: string): MasonError =>
  new MasonError('egress_refused', `${from.host} redirects ${how}`, {
    remedy: 'put the address it leads to into the endpoint, if that one is meant',
    detail: { host: from.host },
  })
