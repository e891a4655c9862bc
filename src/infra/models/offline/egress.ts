import type { Answer, Egress } from '../../egress/port.ts'
import { offlineBaseUrl } from '../../registry/settings-entries.ts'

/** What a fetch gave, as the way out gives it. */
export const answerOf = ({ status, headers, body }: Response): Answer => {
  const reader = body?.getReader()
  return {
    status,
    headers,
    body: {
      read: async () => (await reader?.read())?.value ?? null,
      cancel: () => void reader?.cancel().catch(() => undefined),
    },
  }
}

/** A way out on which the offline model answers at its own address; it is loaded when it is first asked. */
export const withOffline = (egress: Egress): Egress => {
  let offline: Promise<typeof fetch> | undefined
  return {
    prepare: async () => egress.prepare?.(),
    async request(url, init) {
      if (!url.startsWith(`${offlineBaseUrl}/`)) return egress.request(url, init)
      offline ??= import('./fetch.ts').then(({ createOfflineFetch }) => createOfflineFetch())
      const { method = 'GET', headers = {}, body, signal } = init
      const send = await offline
      const text = typeof body === 'string' ? body : null
      return answerOf(await send(url, { method, headers, body: text, signal: signal ?? null }))
    },
    [Symbol.asyncDispose]: () => egress[Symbol.asyncDispose](),
  }
}
