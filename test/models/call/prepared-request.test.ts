import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { sendMeteredRequest } from '../../../src/models/call/metered-request.ts'
import { emptyCanonicalRequest } from '../../../src/models/call/models-port.ts'
import { createModelHealth } from '../../../src/models/health/model-health.ts'
import type { KeyEntry, Provider } from '../../../src/models/ports/model-ports.ts'
import { key, model, view } from '../../support/registry-view.ts'
import { someone } from '../../support/vendors.ts'

const orderOf = async (candidateKey: KeyEntry | null): Promise<string[]> => {
  const order: string[] = []
  const provider: Provider = {
    async prepare() {
      await turn()
      order.push('ready')
    },
    async send() {
      order.push('sent')
      const error = { code: 'model_unavailable' as const, what: 'is away', retry: false }
      return { ok: false, error, usage: null }
    },
  }
  const waits = { baseMs: 5, maxMs: 5 }
  const log = silentLog
  const clock = systemClock
  await sendMeteredRequest(
    {
      providers: { openai: provider, http: provider },
      meter: {
        async reserve() {
          order.push('reserved')
          return { granted: true }
        },
        settle: () => {},
        flush: async () => {},
        [Symbol.asyncDispose]: async () => {},
      },
      health: createModelHealth({ sql: null, hints: null, clock, log, cooling: waits, disabled: waits }),
      clock,
      registry: { view: view({}) },
      redact: (text) => text,
    },
    {
      candidate: { model: model('a'), key: candidateKey, probes: [], only: { model: true, key: true } },
      ask: { ...emptyCanonicalRequest, role: 'planner' },
      role: 'planner',
      caller: someone,
      endsAtMs: clock.monotonicMs() + 60_000,
      onDelta: () => {},
    },
    new AbortController().signal,
  )
  return order
}

test('a key is reserved once its provider is ready: a request leaves when it counts, also the first', async () => {
  expect(await orderOf(key('k', 'v1'))).toEqual(['ready', 'reserved', 'sent'])
})

test('without a key nothing is loaded before it is used', async () => {
  expect(await orderOf(null)).toEqual(['reserved', 'sent'])
})
