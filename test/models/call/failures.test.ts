import { describe, expect, test } from 'vitest'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { Secret } from '../../../src/infra/secrets/secret.ts'
import type { ModelErrorDetail } from '../../../src/models/call/call-errors.ts'
import { createModelGateway } from '../../../src/models/call/model-gateway.ts'
import { createModelHealth } from '../../../src/models/health/model-health.ts'
import type { ModelSelector } from '../../../src/models/ports/call-ports.ts'
import type {
  CanonicalResult,
  KeyEntry,
  Meter,
  ProviderOutcome,
  ProviderRequest,
  RegistryView,
  ReservationResult,
  Settlement,
} from '../../../src/models/ports/model-ports.ts'
import { emptyResult } from '../../../src/models/ports/model-ports.ts'
import { createModelChooser } from '../../../src/models/routing/choose-model-and-key.ts'
import {
  createBadReplyError,
  createConnectionError,
  createStatusError,
  createTimeoutError,
  type ProviderError,
} from '../../../src/models/transport/provider-errors.ts'
import { readHeaderWaits } from '../../../src/models/transport/stated-waits.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import { deferred } from '../../support/deferred.ts'
import { failureOf } from '../../support/models.ts'
import { caller, endpoint, key, model, route, vendor, view } from '../../support/registry-view.ts'
import { callWith, someone } from '../../support/vendors.ts'

/** The call path between a vendor, a ledger and a registry that change or fail in the middle of a call. */

const result: CanonicalResult = { ...emptyResult, text: 'ok' }
const answer: ProviderOutcome = { ok: true, result }
const failed = (error: ProviderError): ProviderOutcome => ({ ok: false, error, usage: null })
const refused: ProviderError = { code: 'model_unauthorized', what: 'answered 401', retry: false, status: 401 }
const asked = { role: 'planner', model: 'a' }
const keyed = (secret = 'sk-old', more: Partial<KeyEntry> = {}) =>
  view({ models: [model('a')], keys: [key('k', 'v1', { secret: new Secret(secret), ...more })] })

type Send = (request: ProviderRequest, signal: AbortSignal) => Promise<ProviderOutcome>

/** Everything real but vendor and ledger. */
const open = (
  send: Send,
  reserve: () => Promise<ReservationResult> = async () => ({ granted: true }),
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
  const health = createModelHealth({
    sql: null,
    hints: null,
    clock: systemClock,
    log: silentLog,
    cooling: waits,
    disabled: waits,
  })
  const modelService = createModelGateway({
    registry,
    chooser: createModelChooser(health),
    providers: { openai: { send }, http: { send } },
    meter,
    health,
    clock: systemClock,
    log,
    retry: { attempts: 3, ...waits },
    redact: (text) => text,
    unread: { keep: () => {} },
  })
  return { registry, settled, health, modelService }
}

describe('a caller that aborts before the first byte', () => {
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
    const slow = deferred<ReservationResult>()
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

describe('a key or endpoint that is due for a probe', () => {
  const cool = async (health: ReturnType<typeof open>['health']): Promise<void> => {
    const how = { kind: 'cool', code: 'model_rate_limited', message: 'busy', retryAfterMs: 1 } as const
    health.failed('key', 'k', how, { isProbe: false })
    await expect.poll(() => health.stateOf('key', 'k')?.due).toBe(true)
  }

  test('gets the time when its limit opens, though its health would allow it at once', async () => {
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

  test('stays due for the next call when the ledger refused the first', async () => {
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
    await using health = createModelHealth({
      sql: { query: () => Promise.reject(new Error('gone')) },
      hints: null,
      clock: systemClock,
      log: silentLog,
    })
    await cool(health)
    expect(await health.claim([{ subject: 'key', id: 'k' }], 60_000)).toBe(true)
    expect(await health.claim([{ subject: 'key', id: 'k' }], 60_000)).toBe(false)
  })
})

test('no vendor is avoided for longer than a day, whatever its response asks for', () => {
  const now = new Date('2026-01-01T00:00:00Z')
  for (const value of ['9'.repeat(20), 'Fri, 31 Dec 9999 23:59:59 GMT'])
    expect(readHeaderWaits(new Headers({ 'retry-after': value }), now).askedMs).toBe(86_400_000)
  expect(readHeaderWaits(new Headers({ 'retry-after-ms': '1e300' }), now).askedMs).toBe(86_400_000)
  expect(readHeaderWaits(new Headers({ 'retry-after': '3600' }), now).askedMs).toBe(3_600_000)
})

test('the keys of a pool go on taking turns when the registry changes', () => {
  const chooser = createModelChooser({ stateOf: () => null })
  const firsts = ['s1', 's2', 's3', 's1', 's2'].map(() => {
    const on = view({ models: [model('a')], keys: ['s1', 's2', 's3'].map((id) => key(id, 'v1')) })
    const [first] = chooser.choose(on, asked, caller()).candidates
    return first?.key?.id
  })
  expect(firsts).toEqual(['s1', 's2', 's3', 's1', 's2'])
})

describe('the reasoning of a model before its calls', () => {
  test('is sent back to its own vendor only, whichever model of the vendor is called', async () => {
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

describe('the usage of a call that timed out', () => {
  const settledBy = async (failure: ProviderError): Promise<Settlement[]> => {
    const { settled, modelService } = open(async () => failed(failure))
    await failureOf(callWith({ modelService }, asked))
    return settled
  }

  test('is entered by our own count, as what was sent', async () => {
    for (const clock of ['first byte', 'idle', 'total'] as const) {
      const [first] = await settledBy(createTimeoutError(clock, 1000))
      expect(first).toMatchObject({
        status: 'failed',
        error_code: 'model_timeout',
        usage: null,
        estimate: { prompt_tokens: 3, completion_tokens: 0 },
      })
    }
  })

  test('is nothing where it refused, or was never reached', async () => {
    const unreached = createConnectionError(
      Object.assign(new Error('late'), { code: 'ETIMEDOUT' }),
      'headers',
    )
    for (const failure of [createStatusError(408, ''), unreached]) {
      const settled = await settledBy(failure)
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
  const fail = async (failure: ProviderError, wanted: ModelSelector) => {
    const lines: unknown[] = []
    const log: Log = { ...silentLog, warn: (data, message) => void lines.push({ ...data, message }) }
    const { registry, modelService } = open(async () => failed(failure), undefined, log)
    registry.view = on
    const caller = { ...someone, run_id: 'run_1' }
    const { code, message, remedy, detail } = await failureOf(callWith({ modelService }, wanted, { caller }))
    return {
      code,
      shown: JSON.stringify({ message, remedy, detail }),
      message,
      logged: JSON.stringify(lines),
    }
  }

  test.each<[ProviderError, ModelSelector]>([
    [createStatusError(401, '{"error":"vendor-words"}'), { role: 'planner' }],
    [createStatusError(404, '{"error":"vendor-words upstream-x"}'), { role: 'planner' }],
    [createStatusError(503, '{"error":"vendor-words"}'), { role: 'planner' }],
    [createStatusError(429, '{"error":"vendor-words"}'), { role: 'planner', model: 'alias-a' }],
    [createBadReplyError('sent vendor-words'), { role: 'planner', model: 'alias-a' }],
    [
      { ...createConnectionError(new Error('connect inner.example'), 'headers'), retry: false },
      { role: 'planner', model: 'alias-a' },
    ],
  ])('shows a business aliases and reasons, and admins the rest in the log: %o', async (failure, wanted) => {
    const { shown, logged } = await fail(failure, wanted)
    expect(shown).toContain('alias-a')
    for (const word of inner) expect(shown).not.toContain(word)
    expect(logged).toContain('a model call failed')
    expect(logged).toContain('"run_id":"run_1"')
    expect(logged).toMatch(/inner\.example|label-of-a-key-1/)
    if (wanted.model === undefined) expect(logged).toContain('endpoint-x-alias-b')
  })

  test('ends when each key was asked often enough, also where one had to wait for longer', async () => {
    let rounds = 0
    const endless = new AbortController()
    const log: Log = { ...silentLog, warn: () => void (++rounds > 20 && endless.abort(new Error('endless'))) }
    const asks: (string | undefined)[] = []
    const limited = createStatusError(429, '')
    const { registry, modelService } = open(
      async ({ key }) => {
        asks.push(key?.id)
        return failed({ ...limited, ...(key?.id === 'slow' && { retryAfterMs: 60 }) })
      },
      undefined,
      log,
    )
    registry.view = view({ models: [model('a')], keys: [key('quick', 'v1'), key('slow', 'v1')] })
    const { code } = await failureOf(callWith({ modelService }, asked, { signal: endless.signal }))
    expect(code).toBe('no_model_available')
    expect(asks.toSorted()).toEqual([...Array(3).fill('quick'), ...Array(3).fill('slow')])
  })

  test('names each candidate once to callers that may not see keys', async () => {
    const { code, message } = await fail(createStatusError(401, ''), { role: 'planner' })
    expect(code).toBe('no_model_available')
    expect(message).toBe(
      'no model is left to answer role "planner": alias-b: disabled by an admin; alias-a: the model server answered 401: refused our key',
    )
  })

  test('passes on what the vendor says about the request itself, under the alias', async () => {
    const refused = createStatusError(400, '{"error":{"message":"upstream-x takes no pictures"}}')
    const { code, message } = await fail(refused, { role: 'planner' })
    expect(code).toBe('model_bad_request')
    expect(message).toBe('the model server answered 400: alias-a takes no pictures (model alias-a)')
  })
})
