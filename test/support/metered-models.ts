import { openEgress } from '../../src/infra/egress/egress.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { createModelGateway } from '../../src/models/call/model-gateway.ts'
import { createModelHealth } from '../../src/models/health/model-health.ts'
import type { ModelEntry, Settlement } from '../../src/models/ports/model-ports.ts'
import { createOpenAIProvider } from '../../src/models/providers/openai/openai-provider.ts'
import { createModelChooser } from '../../src/models/routing/choose-model-and-key.ts'
import { createCountingClock, patient, quickRetry } from './models.ts'
import { caller, endpoint, model, vendor, view } from './registry-view.ts'
import { responseFormats } from './response-formats.ts'

/** The real call path to one server, with what reaches the ledger and the model's row. */
export const createMeteredModels = (server: { baseUrl: string }, more: Partial<ModelEntry> = {}) => {
  const clock = createCountingClock()
  const settled: Settlement[] = []
  const noted: string[] = []
  const own = vendor('acme')
  const entry = model('fake-model', {
    vendor: own,
    endpoint: endpoint('main', {
      ...{ vendor_id: own.id, base_url: server.baseUrl, timeouts: patient, allow_private: true },
    }),
    ...more,
  })
  const health = createModelHealth({ sql: null, hints: null, clock, log: silentLog })
  const egress = openEgress()
  const openai = createOpenAIProvider({ egress, formats: responseFormats, clock, log: silentLog })
  const http = responseFormats.openProvider({ egress, clock })
  const models = createModelGateway({
    registry: { view: view({ models: [entry] }) },
    chooser: createModelChooser(health),
    providers: { openai, http },
    meter: {
      reserve: async () => ({ granted: true }),
      settle: (_, settlement) => void settled.push(settlement),
      flush: async () => {},
      [Symbol.asyncDispose]: async () => {},
    },
    unread: { keep: () => {} },
    stops: { note: ({ name }) => void noted.push(name) },
    ...{ health, clock, log: silentLog, retry: quickRetry, redact: (text: string) => text },
  }).for(caller())
  return { models, settled, noted, clock }
}
