import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import type { ActionDraft } from '../../state/checkpoint.ts'
import type { HostReply, HostRequest } from './http.ref.ts'

/** How long a host is expected to remember an idempotency key, as most payment and shop APIs do. */
const keyWindowMs = 24 * 60 * 60 * 1000

/** Calls an API that an admin has allowed for the business: docs/contract.md, `businesses`. */
export default defineTool({
  name: 'http_request',
  description:
    'Sends one HTTP request to an API that is set up for this business, and returns status and body. ' +
    'Credentials are added by themselves. Redirects are not followed. Other methods than GET and HEAD change something: ' +
    'send each once.',
  kinds: ['call'],
  provenance: 'web',
  input: z.strictObject({
    method: z
      .enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
      .optional()
      .describe('GET when left out'),
    url: z.string().min(1).max(8000).describe('The whole address, with its query'),
    headers: z
      .record(z.string().max(100), z.string().max(2000))
      .optional()
      .describe('Further headers, such as accept; never credentials'),
    body: z
      .union([z.string().max(1_000_000), z.record(z.string(), z.unknown()), z.array(z.unknown())])
      .optional()
      .describe('A text, or a value that is sent as JSON'),
  }),
  effects: ({ method = 'GET' }) => (isRead(method) ? 'read' : 'write'),
  reads: [],
  writes: [],
  needs: ['http'],
  isAvailable: ({ http }) => http.hasHosts(),
  async run(_state, context, signal) {
    const { http, effect, checkpoint } = context
    const request = toHttpRequest(readCallInput(context))
    const permission = await http.check(request)
    if (!permission.ok)
      return checkpoint(
        errorDraft('The request was refused', `Error: ${permission.error}. Nothing was sent.`),
      )
    const name = `${request.method} ${new URL(request.url).host}`
    if (isRead(request.method))
      return checkpoint(toDraft(name, await http.send(request, { key: null, beforeSend() {} }, signal)))
    const response = await effect({
      ...(permission.key_header === null
        ? { class: 'manual' as const }
        : { class: 'keyed' as const, windowMs: keyWindowMs }),
      request: JSON.stringify(request),
      storesResponse: true,
      send: async (stored, key, checkLease, sending) =>
        JSON.stringify(await http.send(JSON.parse(stored), { key, beforeSend: checkLease }, sending)),
    })
    return checkpoint(toDraft(name, parseReply(response)))
  },
})

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD'

type RequestInput = {
  method?: string | undefined
  url: string
  headers?: Record<string, string> | undefined
  body?: unknown
}

const toHttpRequest = ({ method = 'GET', url, headers = {}, body }: RequestInput): HostRequest => {
  if (body === undefined) return { method, url, headers, body: null }
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = /^\s*[[{]/.test(text) ? 'application/json' : 'text/plain; charset=utf-8'
  return { method, url, headers: hasType ? headers : { ...headers, 'content-type': type }, body: text }
}

/** The stored response of a side effect; an operator who confirmed that it took place may not know it. */
const parseReply = (response: string): HostReply | null => {
  try {
    return JSON.parse(response)
  } catch {
    return null
  }
}

const toDraft = (name: string, reply: HostReply | null): ActionDraft => {
  if (!reply)
    return resultDraft(
      `${name}: confirmed by an operator`,
      'An operator confirmed that it took place. Its response is unknown.',
    )
  if (!reply.ok) return errorDraft(`${name} failed`, `Error: ${reply.error}.`)
  const { status, content_type, location, note } = reply
  const lines = [
    `HTTP ${status}${content_type === null ? '' : `, ${content_type}`}`,
    ...(location === null ? [] : [`Location: ${location}`]),
    ...(note === null ? [] : [note]),
  ]
  const text = [lines.join('\n'), ...(reply.text === '' ? [] : [reply.text])].join('\n\n')
  return status >= 400 ? errorDraft(`${name}: ${status}`, text) : resultDraft(`${name}: ${status}`, text)
}
