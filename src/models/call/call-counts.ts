import { addMeteredUsage, type MeteredUsage, type ModelEntry } from '../ports/model-ports.ts'

/** Counts of this process's model calls since it started, for /metrics. */
export type CallCounts = {
  /** One provider request; `code` is `ok` or the code of its error. */
  request(model: ModelEntry, code: string, usage: MeteredUsage): void
  /** A call that a candidate other than the first one answered. */
  fallback(): void
  read(): { requests: RequestCount[]; tokens: TokenCount[]; fallbacks: number }
}

const tokenKinds = ['prompt', 'completion', 'cached', 'reasoning'] as const
type RequestCount = { vendor: string; model: string; code: string; count: number }
type TokenCount = { vendor: string; model: string; kind: (typeof tokenKinds)[number]; count: number }
type Tokens = { vendor: string; model: string; usage: MeteredUsage }

/** Starts all counts at zero. */
export const createCallCounts = (): CallCounts => {
  const requests = new Map<string, RequestCount>()
  const tokens = new Map<string, Tokens>()
  let fallbacks = 0
  return {
    request({ name: model, vendor: { name: vendor } }, code, usage) {
      const name = `${model} ${code}`
      const count = requests.get(name)
      if (count) count.count += 1
      else requests.set(name, { vendor, model, code, count: 1 })
      const sum = tokens.get(model)?.usage
      tokens.set(model, { vendor, model, usage: sum ? addMeteredUsage(sum, usage) : usage })
    },
    fallback() {
      fallbacks += 1
    },
    read: () => ({
      requests: [...requests.values()],
      tokens: [...tokens.values()].flatMap(({ vendor, model, usage }) =>
        tokenKinds.map((kind) => ({ vendor, model, kind, count: usage[`${kind}_tokens`] })),
      ),
      fallbacks,
    }),
  }
}
