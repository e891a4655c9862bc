import type { MeteredUsage, ModelEntry } from '../ports.ts'
import { addMetered } from '../usage.ts'

/** What this process asked of models since it began, for /metrics. */
export type CallCounts = {
  /** One provider request; `code` is `ok` or that of its fault. */
  request(model: ModelEntry, code: string, usage: MeteredUsage): void
  /** A call that another candidate answered than the first one asked. */
  fallback(): void
  read(): {
    requests: { vendor: string; model: string; code: string; count: number }[]
    tokens: {
      vendor: string
      model: string
      kind: 'prompt' | 'completion' | 'cached' | 'reasoning'
      count: number
    }[]
    fallbacks: number
  }
}

type Tokens = { vendor: string; model: string; usage: MeteredUsage }

export const createCallCounts = (): CallCounts => {
  const requests = new Map<string, { vendor: string; model: string; code: string; count: number }>()
  const tokens = new Map<string, Tokens>()
  let fallbacks = 0
  return {
    request({ name: model, vendor: { name: vendor } }, code, usage) {
      const place = `${model} ${code}`
      const known = requests.get(place)
      if (known) known.count += 1
      else requests.set(place, { vendor, model, code, count: 1 })
      const sum = tokens.get(model)?.usage
      tokens.set(model, { vendor, model, usage: sum ? addMetered(sum, usage) : usage })
    },
    fallback() {
      fallbacks += 1
    },
    read: () => ({
      requests: [...requests.values()],
      tokens: [...tokens.values()].flatMap(({ vendor, model, usage }) =>
        (['prompt', 'completion', 'cached', 'reasoning'] as const).map((kind) => ({
          vendor,
          model,
          kind,
          count: usage[`${kind}_tokens`],
        })),
      ),
      fallbacks,
    }),
  }
}
