import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/infra/clock.ts'
import { createCallCounts } from '../../src/infra/models/call/counts.ts'
import type { ModelErrorDetail } from '../../src/infra/models/call/failure.ts'
import { createModelService } from '../../src/infra/models/call/service.ts'
import { createChooser } from '../../src/infra/models/choose/choose.ts'
import { createHealth } from '../../src/infra/models/health/health.ts'
import type { Fault } from '../../src/infra/models/openai/faults.ts'
import { retryAfterMs } from '../../src/infra/models/openai/retry.ts'
import type {
  CanonicalResult,
  KeyEntry,
  Meter,
  ProviderOutcome,
  ProviderRequest,
  RegistryView,
  Reserved,
  Settlement,
} from '../../src/infra/models/ports.ts'
import { Secret } from '../../src/infra/secrets/secret.ts'
import { silentLog } from '../../src/infra/silent-log.ts'
import { MasonError } from '../../src/state/errors.ts'
import { deferred } from '../support/deferred.ts'
import { failureOf } from '../support/models.ts'
import { caller, key, model, view } from '../support/registry-view.ts'
import { callWith } from '../support/vendors.ts'

/** The call path between a vendor, a ledger and a registry that change or fail in the middle of a call. */

const result: CanonicalResult = {
  text: 'ok',
  reasoning: '',
  tool_calls: [],
  images: [],
  video: null,
  embeddings: [],
  ranking: [],
  job: null,
  finish: 'stop',
  usage: null,
  model: null,
}
const answer: ProviderOutcome = { ok: true, result }
const failed = (fault: Fault): ProviderOutcome => ({ ok: false, fault, usage: null })
const refused: Fault = { code: 'model_unauthorized', what: 'answered 401', retry: false, status: 401 }
const asked = { role: 'planner', model: 'a' }
const keyed = (secret = 'sk-old', more: Partial<KeyEntry> = {}) =>
  view({ models: [model('a')], keys: [key('k', 'v1', { secret: new Secret(secret), ...more })] })

type Send = (request: ProviderRequest, signal: AbortSignal) => Promise<ProviderOutcome>

/** Everything real but vendor and ledger. */
const open = (send: Send, reserve: () => Promise<Reserved> = async () => ({ granted: true })) => {
  const registry: { view: RegistryView } = { view: keyed() }
  const settled: Settlement[] = []
  const meter: Meter = {
    reserve,
    settle: (_, settlement) => void settled.push(settlement),
    flush: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  const waits = { baseMs: 5, maxMs: 5 }
  const health = createHealth({
    sql: null,
    hints: null,
    clock: systemClock,
    log: silentLog,
    cooling: waits,
    disabled: waits,
  })
  const modelService = createModelService({
    registry,
    chooser: createChooser(health),
    providers: { openai: { send }, http: { send } },
    meter,
    health,
    clock: systemClock,
    log: silentLog,
    retry: { attempts: 3, ...waits },
    redact: (text) => text,
    unread: { keep: () => {} },
    counts: createCallCounts(),
  })
  return { registry, settled, health, modelService }
}

describe('whoever leaves before the first byte', () => {
  const leave = async (when: 'sent' | 'reserved'): Promise<Settlement[]> => {
    const leaver = new AbortController()
    const gone = new Error('the caller left')
    const { settled, modelService } = open(
      async (_, signal) => {
        leaver.abort(gone)
        signal.throwIfAborted()
        return answer
      },
      async () => {
        if (when === 'reserved') leaver.abort(gone)
        return { granted: true }
      },
    )
    await expect(callWith({ modelService }, asked, { signal: leaver.signal })).rejects.toBe(gone)
    return settled
  }

  test('pays for what was sent, as far as we can tell', async () => {
    expect(await leave('sent')).toMatchObject([
      { status: 'aborted', usage: null, estimate: { prompt_tokens: 3, completion_tokens: 0 } },
    ])
  })

  test('waits for no database, and what it grants later is given back', async () => {
    const slow = deferred<Reserved>()
    const leaver = new AbortController()
    const gone = new Error('the caller left')
    const { settled, modelService } = open(
      async () => answer,
      () => {
        queueMicrotask(() => leaver.abort(gone))
        return slow.promise
      },
    )
    await expect(callWith({ modelService }, asked, { signal: leaver.signal })).rejects.toBe(gone)
    expect(settled).toEqual([])
    slow.resolve({ granted: true })
    await expect.poll(() => settled).toMatchObject([{ status: 'aborted', usage: null, estimate: null }])
  })

  test('pays nothing when nothing was sent', async () => {
    expect(await leave('reserved')).toMatchObject([{ status: 'aborted', usage: null, estimate: null }])
  })
})

describe('a key that is rotated in the middle of a call', () => {
  test('is not disabled by what its old secret met, and the call goes on with the new one', async () => {
    const used: (string | undefined)[] = []
    const { health, modelService, registry } = open(async ({ key }) => {
      used.push(key?.secret?.reveal())
      if (used.length > 1) return answer
      registry.view = keyed('sk-new')
      return failed(refused)
    })
    expect((await callWith({ modelService }, asked)).result.text).toBe('ok')
    expect(used).toEqual(['sk-old', 'sk-new'])
    expect(health.stateOf('key', 'k')).toBeNull()
  })

  test('one that was not rotated is disabled, and asked once', async () => {
    let requests = 0
    const { health, modelService } = open(async () => {
      requests += 1
      return failed(refused)
    })
    expect((await failureOf(callWith({ modelService }, asked))).code).toBe('model_unauthorized')
    expect(requests).toBe(1)
    expect(health.stateOf('key', 'k')).toMatchObject({ state: 'disabled' })
  })
})

describe('what is due for a probe', () => {
  const cool = async (health: ReturnType<typeof open>['health']): Promise<void> => {
    const how = { kind: 'cool', code: 'model_rate_limited', message: 'busy', retryAfterMs: 1 } as const
    health.failed('key', 'k', how, { isProbe: false })
    await expect.poll(() => health.stateOf('key', 'k')?.due).toBe(true)
  }

  test('is told when its limit opens, though its health would have it at once', async () => {
    const limited = { granted: false, limit: 'tpm', retryAfterMs: 3_600_000 } as const
    let looks = 0
    const { health, modelService } = open(
      async () => answer,
      async () => {
        looks += 1
        return limited
      },
    )
    await cool(health)
    const { detail } = await failureOf(callWith({ modelService }, asked))
    expect(detail).toMatchObject({
      limited: true,
      retry_after_ms: 3_600_000,
    } satisfies Partial<ModelErrorDetail>)
    expect(looks).toBe(1)
  })

  test('is free for the next call when the ledger refused to take the first', async () => {
    let isDown = true
    const { health, modelService } = open(
      async () => answer,
      async () => {
        if (isDown) throw new MasonError('database_unavailable', 'the database is gone')
        return { granted: true }
      },
    )
    await cool(health)
    expect((await failureOf(callWith({ modelService }, asked))).code).toBe('database_unavailable')
    isDown = false
    expect((await callWith({ modelService }, asked)).result.text).toBe('ok')
  })

  test('can be tried while the database is away', async () => {
    await using health = createHealth({
      sql: { query: () => Promise.reject(new Error('gone')) },
      hints: null,
      clock: systemClock,
      log: silentLog,
    })
    await cool(health)
    expect(await health.claim('key', 'k', 60_000)).toBe(true)
    expect(await health.claim('key', 'k', 60_000)).toBe(false)
  })
})

test('no vendor is left alone for longer than a day, whatever he asks for', () => {
  const now = new Date('2026-01-01T00:00:00Z')
  for (const value of ['9'.repeat(20), 'Fri, 31 Dec 9999 23:59:59 GMT'])
    expect(retryAfterMs(new Headers({ 'retry-after': value }), now)).toBe(86_400_000)
  expect(retryAfterMs(new Headers({ 'retry-after-ms': '1e300' }), now)).toBe(86_400_000)
  expect(retryAfterMs(new Headers({ 'retry-after': '3600' }), now)).toBe(3_600_000)
})

test('the keys of a pool go on taking turns when the registry changes', () => {
  const chooser = createChooser({ stateOf: () => null })
  const firsts = ['s1', 's2', 's3', 's1', 's2'].map(() => {
    const on = view({ models: [model('a')], keys: ['s1', 's2', 's3'].map((id) => key(id, 'v1')) })
    const [first] = chooser.choose(on, asked, caller()).candidates
    return first?.key?.id
  })
  expect(firsts).toEqual(['s1', 's2', 's3', 's1', 's2'])
})
