import { openEgress } from '../../src/infra/egress/egress.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { createModelGateway } from '../../src/models/call/model-gateway.ts'
import { createModelHealth, type ModelHealthOptions } from '../../src/models/health/model-health.ts'
import type { ModelGateway } from '../../src/models/ports/call-ports.ts'
import type { KeyEntry, ModelEntry } from '../../src/models/ports/model-ports.ts'
import { createOpenAIProvider } from '../../src/models/providers/openai/openai-provider.ts'
import { createModelChooser } from '../../src/models/routing/choose-model-and-key.ts'
import { createJumpingClock } from './jumping-clock.ts'
import * as entries from './registry-view.ts'
import { responseFormats } from './response-formats.ts'

const noProvider = { send: () => Promise.reject(new Error('nothing here speaks http')) }

/** The real call path over a route of models, without a database: health, chooser, provider and HTTP are those of Mason. */
export const openRoute = (
  { models, keys }: { models: readonly ModelEntry[]; keys: readonly KeyEntry[] },
  waits: Partial<ModelHealthOptions> = {},
) => {
  const clock = createJumpingClock()
  const health = createModelHealth({
    sql: null,
    hints: null,
    clock,
    log: silentLog,
    random: () => 0.5,
    ...waits,
  })
  const openai = createOpenAIProvider({
    egress: openEgress(),
    formats: responseFormats,
    clock,
    log: silentLog,
  })
  const view = entries.view({
    models,
    keys,
    routesByRole: { planner: entries.route(models.map(({ name }) => name)) },
  })
  const modelService: ModelGateway = createModelGateway({
    registry: { view },
    chooser: createModelChooser(health, () => 0.5),
    providers: { openai, http: noProvider },
    meter: {
      reserve: async () => ({ granted: true }),
      settle: () => {},
      flush: async () => {},
      [Symbol.asyncDispose]: async () => {},
    },
    ...{ health, clock, log: silentLog, retry: { attempts: 2, baseMs: 1, maxMs: 2 } },
    redact: (text) => text,
    unread: { keep: () => {} },
    random: () => 0.5,
  })
  return { modelService, health, clock }
}

/** Two models, `m1` before `m2`: on one endpoint with one key, or with two vendors. */
export const twoModels = (baseUrl: string, layout: 'shared' | 'two') => {
  const timeouts = { firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 }
  const of = (name: string, id: string) => {
    const vendor = entries.vendor(`v${id}`)
    const endpoint = entries.endpoint(`e${id}`, {
      ...{ vendor_id: vendor.id, base_url: baseUrl, timeouts, allow_private: true },
    })
    return entries.model(name, { vendor, endpoint })
  }
  const second = layout === 'shared' ? '1' : '2'
  return {
    models: [of('m1', '1'), of('m2', second)],
    keys: [...new Set(['1', second])].map((id) => entries.key(`k${id}`, `v${id}`)),
  }
}
