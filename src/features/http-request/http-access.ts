import { z } from 'zod'
import { readBusinessSecrets } from '../../accounts/business-secrets.ts'
import { fillSecrets, type HttpHost, httpHeadersSchema, toLowerNames } from '../../accounts/http-hosts.ts'
import { toErrorReason } from '../../files/origins/download.ts'
import { queryOne } from '../../infra/database/database.ts'
import type { Egress, EgressResponse } from '../../infra/egress/egress-port.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import { openDeadline } from '../../state/deadline.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { keepWithView, type Viewed } from '../keep-with-view.ts'
import type { HostPermission, HostReply, HostRequest, HttpAccess } from './http.ref.ts'

/** What requests to allowed hosts need beside the business. */
export type HttpAccessOptions = {
  egress: Egress
  masterKeys: MasterKeys
  scrubber: Scrubber
  registry: Viewed
}

const timeoutMs = 30_000
const maxReplyBytes = 1024 * 1024
const safeMethods = new Set(['GET', 'HEAD'])
/** Whether a business has hosts. */
const keepHasHosts = keepWithView<boolean>()

/**
 * Requests of one run to the hosts that are allowed for its business. The allow-list and the secrets are read for each
 * request, so that a change holds at once. Redirects are not followed: the next address may be another host.
 */
export const createHttpAccess = (
  { egress, masterKeys, scrubber, registry }: HttpAccessOptions,
  sql: Sql,
  businessId: string,
): HttpAccess => {
  const readHosts = async (): Promise<HttpHost[]> => {
    const statement = 'SELECT http_hosts FROM businesses WHERE tenant = $1'
    return (await queryOne<{ http_hosts: HttpHost[] }>(sql, statement, [businessId]))?.http_hosts ?? []
  }

  const find = async (request: HostRequest): Promise<HttpHost | string> => {
    const hosts = await readHosts()
    const url = URL.canParse(request.url) ? new URL(request.url) : null
    const host = url && findHttpHost(hosts, url)
    if (!url || !host) return toRefusal(url?.host ?? 'this address', hosts)
    if (url.protocol !== 'https:' && !(host.allow_private && url.protocol === 'http:'))
      return `${url.protocol}// is not allowed for ${url.host}; use https://`
    if (!host.methods.some((method) => method === request.method))
      return `${request.method} is not allowed for ${url.host}, only ${host.methods.join(', ')}`
    if (safeMethods.has(request.method) && request.body !== null)
      return `${request.method} takes no body; put it into the address, or use POST`
    const headers = httpHeadersSchema.safeParse(request.headers)
    if (!headers.success) return `the headers are invalid: ${z.prettifyError(headers.error)}`
    return host
  }

  const toHeaders = async (
    request: HostRequest,
    host: HttpHost,
  ): Promise<Record<string, string> | string> => {
    const names = Object.entries(host.headers)
    const secrets = names.some(([, value]) => value.includes('{secrets.'))
      ? await readBusinessSecrets(sql, masterKeys, businessId)
      : {}
    for (const secret of Object.values(secrets)) scrubber.add(secret)
    const headers = toLowerNames(request.headers)
    for (const [name, value] of names) {
      const filled = fillSecrets(value, secrets)
      if (filled === null)
        return `the header ${name} of ${host.host} names a secret that is missing; an admin sets it (PATCH /admin/v1/businesses/${businessId})`
      headers[name.toLowerCase()] = filled
    }
    return headers
  }

  return {
    hasHosts: () => keepHasHosts(registry, businessId, async () => (await readHosts()).length > 0),
    async check(request): Promise<HostPermission> {
      const host = await find(request)
      return typeof host === 'string'
        ? { ok: false, error: host }
        : { ok: true, key_header: host.idempotency_header }
    },
    async send(request, { key, beforeSend }, signal): Promise<HostReply> {
      const host = await find(request)
      if (typeof host === 'string') return { ok: false, error: host }
      const headers = await toHeaders(request, host)
      if (typeof headers === 'string') return { ok: false, error: headers }
      if (key !== null && host.idempotency_header !== null)
        headers[host.idempotency_header.toLowerCase()] = key
      using deadline = openDeadline(timeoutMs, signal)
      let isSent = false
      try {
        const response = await egress.request(request.url, {
          method: request.method,
          headers,
          body: request.body,
          signal: deadline.signal,
          allowPrivate: host.allow_private,
          maxRedirects: 0,
          beforeSend() {
            beforeSend()
            isSent = true
          },
        })
        return await readReply(response, scrubber)
      } catch (error) {
        signal.throwIfAborted()
        if (isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
        const reason = deadline.signal.aborted ? `no answer within ${timeoutMs / 1000} s` : toReason(error)
        const message = `${new URL(request.url).host} could not be reached: ${reason}`
        if (isSent && !safeMethods.has(request.method)) throw new Error(message)
        return { ok: false, error: message }
      }
    },
  }
}

/** The entry for an address, the exact host before a wildcard; undefined where the host is not allowed. */
const findHttpHost = (hosts: readonly HttpHost[], url: URL): HttpHost | undefined =>
  hosts.find(({ host }) => host === url.host) ??
  hosts.find(({ host }) => host.startsWith('*.') && url.host.endsWith(host.slice(1)))

const toRefusal = (name: string, hosts: readonly HttpHost[]): string =>
  hosts.length === 0
    ? `no host is allowed for this business; an admin adds ${name} to its http_hosts (PATCH /admin/v1/businesses/{id})`
    : `${name} is not allowed. Allowed: ${hosts.map(({ host }) => host).join(', ')}`

/** Without the address, which may hold a key. */
const toReason = (error: unknown): string =>
  isMasonError(error, 'egress_refused') ? error.message : toErrorReason(error)

const textTypes = /^text\/|[/+](?:json|xml|yaml|javascript|x-www-form-urlencoded|x-ndjson|graphql)\b/i

const readReply = async (response: EgressResponse, scrubber: Scrubber): Promise<HostReply> => {
  const { status, headers, body } = response
  const contentType = headers.get('content-type')
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes <= maxReplyBytes) continue
    body.cancel()
    break
  }
  const isText = contentType === null || textTypes.test(contentType)
  const text = isText ? decodeText(Buffer.concat(chunks).subarray(0, maxReplyBytes), contentType) : ''
  const location = headers.get('location')
  return {
    ok: true,
    status,
    content_type: contentType?.slice(0, 200) ?? null,
    location: location === null ? null : scrubber.text(location.slice(0, 2000)),
    text: scrubber.text(text),
    note: describeMissing(isText, bytes, contentType),
  }
}

const describeMissing = (isText: boolean, bytes: number, contentType: string | null): string | null => {
  if (!isText && bytes > 0) return `The body is ${contentType?.slice(0, 100)}, which is not text.`
  return bytes > maxReplyBytes ? 'The body is longer than 1 MB; this is its start.' : null
}

/** By the charset of the content type, else as UTF-8. The database takes no NUL. */
const decodeText = (bytes: Uint8Array, contentType: string | null): string => {
  const charset = /;\s*charset="?([\w-]{1,40})/i.exec(contentType ?? '')?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(bytes).replaceAll('\0', '\ufffd')
  } catch {
    return new TextDecoder().decode(bytes).replaceAll('\0', '\ufffd')
  }
}
