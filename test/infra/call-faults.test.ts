import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/infra/clock.ts'
import { createCallCounts } from '../../src/infra/models/call/counts.ts'
import type { ModelErrorDetail } from '../../src/infra/models/call/failure.ts'
import { createModelService } from '../../src/infra/models/call/service.ts'
import type { Wanted } from '../../src/infra/models/call-ports.ts'
import { createChooser } from '../../src/infra/models/choose/choose.ts'
import { createHealth } from '../../src/infra/models/health/health.ts'
import { emptyResult } from '../../src/infra/models/openai/reply.ts'
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
import {
  type Fault,
  faultOfClock,
  faultOfConnection,
  faultOfReply,
  faultOfStatus,
} from '../../src/infra/models/wire/faults.ts'
import { retryAfterMs } from '../../src/infra/models/wire/retry.ts'
import { Secret } from '../../src/infra/secrets/secret.ts'
import { silentLog } from '../../src/infra/silent-log.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { Log } from '../../src/state/ports.ts'
import { deferred } from '../support/deferred.ts'
import { failureOf } from '../support/models.ts'
import { caller, endpoint, key, model, route, vendor, view } from '../support/registry-view.ts'
import { callWith, someone } from '../support/vendors.ts'

/** The call path between a vendor, a ledger and a registry that change or fail in the middle of a call. */

const result: CanonicalResult = { ...emptyResult, text: 'ok' }
const answer: ProviderOutcome = { ok: true, result }
const failed = (fault: Fault): ProviderOutcome => ({ ok: false, fault, usage: null })
const refused: Fault = { code: 'model_unauthorized', what: 'answered 401', retry: false, status: 401 }
const asked = { role: 'planner', model: 'a' }
const keyed = (secret = 'sk-old', more: Partial<KeyEntry> = {}) =>
  view({ models: [model('a')], keys: [key('k', 'v1', { secret: new Secret(secret), ...more })] })

type Send = (request: ProviderRequest, signal: AbortSignal) => Promise<ProviderOutcome>

/** Everything real but vendor and ledger. */
const open = (
  send: Send,
  reserve: () => Promise<Reserved> = async () => ({ granted: true }),
  log: Log = silentLog,
) => {
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
    log,
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

describe('what a model thought before its calls', () => {
  test('goes back to its own vendor only, whichever of his models is asked', async () => {
    const sent: unknown[] = []
    const { registry, modelService } = open(async ({ ask, model: { name } }) => {
      sent.push([name, ask.messages.map((message) => 'reasoning' in message && message.reasoning?.text)])
      return name === 'c' ? answer : failed({ code: 'model_bad_reply', what: 'sent nothing', retry: false })
    })
    const of = (name: string, id: string) => model(name, { vendor: vendor(id) })
    registry.view = view({
      models: [of('a', 'v1'), of('b', 'v1'), of('c', 'v2')],
      routesByRole: { planner: route(['b', 'c']) },
    })
    const thought = (text: string, by: string) =>
      ({ role: 'assistant', content: '', tool_calls: [], reasoning: { text, by } }) as const
    const messages = [thought('one', 'a'), thought('two', 'c'), thought('three', 'gone')]
    await callWith({ modelService }, { role: 'planner' }, { ask: { messages } })
    expect(sent).toEqual([
      ['b', ['one', false, false]],
      ['c', [false, 'two', false]],
    ])
  })
})

describe('what a vendor that was too slow may bill', () => {
  const settledBy = async (fault: Fault): Promise<Settlement[]> => {
    const { settled, modelService } = open(async () => failed(fault))
    await failureOf(callWith({ modelService }, asked))
    return settled
  }

  test('is entered by our own count, as what was sent', async () => {
    for (const clock of ['first byte', 'idle', 'total'] as const) {
      const [first] = await settledBy(faultOfClock(clock, 1000))
      expect(first).toMatchObject({
        status: 'failed',
        error_code: 'model_timeout',
        usage: null,
        estimate: { prompt_tokens: 3, completion_tokens: 0 },
      })
    }
  })

  test('is nothing where it refused, or was never reached', async () => {
    const unreached = faultOfConnection(Object.assign(new Error('late'), { code: 'ETIMEDOUT' }), 'headers')
    for (const fault of [faultOfStatus(408, ''), unreached]) {
      const settled = await settledBy(fault)
      expect(settled[0]).toMatchObject({ error_code: 'model_timeout', estimate: null })
    }
  })
})

describe('a call that fails', () => {
  const inner = ['label-of-a-key', 'inner.example', 'upstream-x', 'vendor-words', 'endpoint-x']
  const secretive = (name: string, more = {}) =>
    model(name, {
      upstream_name: 'upstream-x',
      endpoint: endpoint(`endpoint-x-${name}`, { base_url: 'https://inner.example/v1', ...more }),
    })
  const on = view({
    models: [secretive('alias-a'), secretive('alias-b', { active: false })],
    keys: ['1', '2'].map((n) => key(n, 'v1', { label: `label-of-a-key-${n}` })),
    routesByRole: { planner: route(['alias-a', 'alias-b']) },
  })
  const fail = async (fault: Fault, wanted: Wanted) => {
    const lines: unknown[] = []
    const log: Log = { ...silentLog, warn: (data, message) => void lines.push({ ...data, message }) }
    const { registry, modelService } = open(async () => failed(fault), undefined, log)
    registry.view = on
    const caller = { ...someone, run_id: 'run_1' }
    const { code, message, remedy, detail } = await failureOf(callWith({ modelService }, wanted, { caller }))
    return { code, told: JSON.stringify({ message, remedy, detail }), message, logged: JSON.stringify(lines) }
  }

  test.each<[Fault, Wanted]>([
    [faultOfStatus(401, '{"error":"vendor-words"}'), { role: 'planner' }],
    [faultOfStatus(404, '{"error":"vendor-words upstream-x"}'), { role: 'planner' }],
    [faultOfStatus(503, '{"error":"vendor-words"}'), { role: 'planner' }],
    [faultOfStatus(429, '{"error":"vendor-words"}'), { role: 'planner', model: 'alias-a' }],
    [faultOfReply('sent vendor-words'), { role: 'planner', model: 'alias-a' }],
    [
      { ...faultOfConnection(new Error('connect inner.example'), 'headers'), retry: false },
      { role: 'planner', model: 'alias-a' },
    ],
  ])('tells a business aliases and reasons, and admins the rest in the log: %o', async (fault, wanted) => {
    const { told, logged } = await fail(fault, wanted)
    expect(told).toContain('alias-a')
    for (const word of inner) expect(told).not.toContain(word)
    expect(logged).toContain('a model call failed')
    expect(logged).toContain('"run_id":"run_1"')
    expect(logged).toMatch(/inner\.example|label-of-a-key-1/)
    if (wanted.model === undefined) expect(logged).toContain('endpoint-x-alias-b')
  })

  test('names each candidate once to whoever knows no keys', async () => {
    const { code, message } = await fail(faultOfStatus(401, ''), { role: 'planner' })
    expect(code).toBe('no_model_available')
    expect(message).toBe(
      'no model is left to answer role "planner": alias-b: disabled by an admin; alias-a: the model server answered 401: refused our key',
    )
  })

  test('hands on what the vendor says of the request itself, under the alias', async () => {
    const refused = faultOfStatus(400, '{"error":{"message":"upstream-x takes no pictures"}}')
    const { code, message } = await fail(refused, { role: 'planner' })
    expect(code).toBe('model_bad_request')
    expect(message).toBe('the model server answered 400: alias-a takes no pictures (model alias-a)')
  })
})
