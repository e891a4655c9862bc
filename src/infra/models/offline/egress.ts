import { offlineBaseUrl } from '../../registry/settings-entries.ts'
import type { Egress } from '../ports.ts'

/** A way out on which the offline model answers at its own address; it is loaded when it is first asked. */
export const withOffline = (egress: Egress): Egress => {
  let offline: Promise<typeof fetch> | undefined
  return {
    async fetch(url, init) {
      if (!url.startsWith(`${offlineBaseUrl}/`)) return egress.fetch(url, init)
      offline ??= import('./fetch.ts').then(({ createOfflineFetch }) => createOfflineFetch())
      const { method = 'GET', headers = {}, body, signal } = init
      return (await offline)(url, {
        method,
        headers,
        body: typeof body === 'string' ? body : null,
        signal: signal ?? null,
      })
    },
    [Symbol.asyncDispose]: () => egress[Symbol.asyncDispose](),
  }
}
