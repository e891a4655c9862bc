import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { FakeMessage, FakeRequest } from './types.ts'

type Fields = Record<string, unknown>
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const schemaOf = ({ response_format: format }: Fields): Fields | undefined => {
  const inner = isObject(format) && isObject(format.json_schema) ? format.json_schema.schema : undefined
  return isObject(inner) ? inner : undefined
}

const flat = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

/** All requests so far, and a way to wait for the next ones. */
export type Journal = {
  note(headers: IncomingHttpHeaders, body: unknown): FakeRequest
  all(role?: string): FakeRequest[]
  received(count: number, role: string | undefined, signal: AbortSignal): Promise<FakeRequest[]>
  clear(): void
}

export const createJournal = (): Journal => {
  const requests: FakeRequest[] = []
  const news = new EventTarget()
  const all = (role?: string): FakeRequest[] =>
    requests.filter((request) => role === undefined || request.role === role)
  return {
    note: (given, value) => {
      const headers = flat(given)
      const body = isObject(value) ? value : {}
      const role = headers['x-mason-role'] || 'none'
      const request = {
        role,
        messages: (Array.isArray(body.messages) ? body.messages : []) as FakeMessage[],
        tools: Array.isArray(body.tools) ? body.tools : [],
        schema: schemaOf(body),
        body,
        headers,
        nth: all(role).length + 1,
        atMs: performance.now(),
        reportedUsage: null,
      }
      requests.push(request)
      news.dispatchEvent(new Event('request'))
      return request
    },
    all,
    received: async (count, role, signal) => {
      while (all(role).length < count) await once(news, 'request', { signal })
      return all(role)
    },
    clear: () => {
      requests.length = 0
    },
  }
}
