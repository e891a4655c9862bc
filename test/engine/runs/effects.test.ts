// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import { performEffect } from '../../../src/engine/runs/effects.ts'
import { createLeaseLostError } from '../../../src/engine/runs/leases.ts'
import { createRunLog } from '../../../src/engine/runs/run-log.ts'
import { createUnknownEffects } from '../../../src/engine/runs/unknown-effects.ts'
import { startWaits } from '../../../src/engine/runs/waits.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { EffectRefusedError } from '../../../src/state/errors.ts'
import type { EffectRequest, EffectResult } from '../../../src/state/ports/effects.ts'
import { test } from '../../support/integration-test.ts'
import { appendAction, codeOf, count, endLease, entry, mustClaim, submitTo } from '../../support/runs.ts'

const call = { plan_seq: 3, index: 0 }
const never = new AbortController().signal

/** As a worker holds a run whose lease is looked at so. */
const checking = (check: () => void) => ({
  lease: { signal: never, check },
  appendTogether: async () => false,
})

/** A provider that notes what it is sent, and may never answer (as if the worker died while it waited). */
const provider = () => {
  const sent: { request: string; key: string }[] = []
  const looked: string[] = []
  const request = (more: Partial<EffectRequest> = {}): EffectRequest => ({
    class: 'keyed',
    windowMs: 60_000,
    request: 'pay 5',
    async send(text, key) {
      sent.push({ request: text, key })
      return `receipt ${sent.length}`
    },
    ...more,
  })
  const dying = (more: Partial<EffectRequest> = {}): EffectRequest =>
    request({
      ...more,
      async send(text, key) {
        sent.push({ request: text, key })
        throw new Error('the worker died here')
      },
    })
  return { sent, looked, request, dying }
}

const start = async (database: Database) => {
  await submitTo(database, 'a')
  const run = await mustClaim(database)
  const perform = (request: EffectRequest, fence = run, at = call): Promise<EffectResult> =>
    performEffect(database, fence, at, request, never)
  const row = () =>
    queryOne<{
      status: string
      sends: number
      response: string | null
      request: Uint8Array
      first_sent_at: Date | null
    }>(database, 'SELECT * FROM effects WHERE run_id = $1 ORDER BY created_at LIMIT 1', [run.run_id])
  const takeOver = async () => {
    await endLease(database, run.run_id)
    return mustClaim(database, 'another')
  }
  return { run, perform, row, takeOver }
}

describe('a side effect', () => {
  test('is written down as intent, then as sent, before anything leaves', async ({ database }) => {
    const { perform, row } = await start(database)
    const seen: unknown[] = []
    const { request } = provider()
    const look = async (): Promise<string> => {
      seen.push(await row())
      return 'receipt'
    }
    const { effect_id } = await perform(request({ send: look }))
    expect(seen).toMatchObject([{ status: 'sent', sends: 1, response: null, effect_id }])
    expect(Buffer.from((seen[0] as { request: Uint8Array }).request).toString()).toBe('pay 5')
    expect((await row())?.first_sent_at).not.toBeNull()
  })

  test('and its response become durable with the action that records it', async ({ database }) => {
    const { run, perform, row } = await start(database)
    const effect = await perform(provider().request())
    expect((await row())?.status).toBe('sent')
    await appendAction(database, run, entry(1, { effect }))
    expect(await row()).toMatchObject({ status: 'succeeded', response: 'receipt 1' })
  })

  test('whose response is stored when it comes is returned to a worker that takes over before the action', async ({
    database,
  }) => {
    const { run, perform, row, takeOver } = await start(database)
    const { sent, request } = provider()
    const effect = await perform(request({ class: 'manual', storesResponse: true }))
    expect(await row()).toMatchObject({ status: 'succeeded', response: 'receipt 1' })
    const next = await takeOver()
    expect(await perform(request({ class: 'manual', storesResponse: true }), next)).toEqual(effect)
    expect(sent).toHaveLength(1)
    expect(await codeOf(appendAction(database, run, entry(1, { effect })))).toBe('lease_lost')
    await appendAction(database, next, entry(1, { effect }))
    expect(await row()).toMatchObject({ status: 'succeeded', response: 'receipt 1', sends: 1 })
  })

  test('whose worker lost the run while it waited stores no response', async ({ database }) => {
    const { perform, row, takeOver } = await start(database)
    const { request } = provider()
    const slow = request({
      storesResponse: true,
      async send() {
        await takeOver()
        return 'receipt'
      },
    })
    expect(await codeOf(perform(slow))).toBe('lease_lost')
    expect(await row()).toMatchObject({ status: 'sent', response: null })
  })

  test('that has succeeded is returned and not done again', async ({ database }) => {
    const { run, perform, takeOver } = await start(database)
    const { sent, request } = provider()
    const effect = await perform(request())
    await appendAction(database, run, entry(1, { effect }))
    expect(await perform(request({ request: 'other bytes' }), await takeOver())).toEqual(effect)
    expect(sent).toHaveLength(1)
  })

  test('of each call has its own key, which stays the same', async ({ database }) => {
    const { perform, takeOver } = await start(database)
    const { sent, request, dying } = provider()
    await perform(dying()).catch(() => {})
    await perform(request(), undefined, { ...call, index: 1 })
    await perform(request(), await takeOver())
    const [first, second, again] = sent.map(({ key }) => key)
    expect(again).toBe(first)
    expect(second).not.toBe(first)
  })
})

describe('a worker that takes over and finds it sent', () => {
  test('sends the stored bytes again under the same key, to a provider that knows keys', async ({
    database,
  }) => {
    const { perform, row, takeOver } = await start(database)
    const { sent, request, dying } = provider()
    await perform(dying()).catch(() => {})
    const next = await takeOver()
    const effect = await perform(request({ request: 'pay 7, made anew' }), next)
    expect(effect.response).toBe('receipt 2')
    expect(sent.map((one) => one.request)).toEqual(['pay 5', 'pay 5'])
    expect(await row()).toMatchObject({ status: 'sent', sends: 2 })
  })

  test('does not once four fifths of the time the provider keeps keys are over', async ({ database }) => {
    const { perform, row, takeOver, run } = await start(database)
    const { sent, request, dying } = provider()
    await perform(dying()).catch(() => {})
    const age = (seconds: number) =>
      database.query(
        `UPDATE effects SET first_sent_at = clock_timestamp() - $2::int * interval '1 second' WHERE run_id = $1`,
        [run.run_id, seconds],
      )
    const next = await takeOver()
    const kept = request({ windowMs: 6_000_000 })
    await age(4700)
    await perform(kept, next)
    await age(4900)
    expect(await codeOf(perform(kept, next))).toBe('effect_unknown')
    expect(sent).toHaveLength(2)
    expect((await row())?.status).toBe('unknown')
    expect(await codeOf(perform(kept, next))).toBe('effect_unknown')
  })

  test('looks it up first where that can be done, and does not send what was done', async ({ database }) => {
    const { perform, takeOver } = await start(database)
    const { sent, looked, request, dying } = provider()
    await perform(dying({ class: 'queryable' })).catch(() => {})
    const lookup = async (key: string): Promise<string> => {
      looked.push(key)
      return 'receipt found'
    }
    const effect = await perform(request({ class: 'queryable', lookup }), await takeOver())
    expect(effect.response).toBe('receipt found')
    expect(looked).toEqual([sent[0]?.key])
    expect(sent).toHaveLength(1)
  })

  test('sends it again when the provider never saw it', async ({ database }) => {
    const { perform, takeOver } = await start(database)
    const { sent, request, dying } = provider()
    await perform(dying({ class: 'queryable' })).catch(() => {})
    const effect = await perform(request({ class: 'queryable', lookup: async () => null }), await takeOver())
    expect(effect.response).toBe('receipt 2')
    expect(sent).toHaveLength(2)
  })

  test('looks it up as the last thing, after the database has let it send', async ({ database }) => {
    const { perform, row, takeOver } = await start(database)
    const { sent, request, dying } = provider()
    await perform(dying({ class: 'queryable' })).catch(() => {})
    const seen: unknown[] = []
    const lookup = async (): Promise<null> => {
      seen.push(await row(), sent.length)
      return null
    }
    await perform(request({ class: 'queryable', lookup }), await takeOver())
    expect(seen).toMatchObject([{ status: 'sent', sends: 2 }, 1])
  })

  test('does not send what it looked up under a lease that is over', async ({ database }) => {
    const { perform, takeOver } = await start(database)
    const { sent, request, dying } = provider()
    await perform(dying({ class: 'queryable' })).catch(() => {})
    const log = createRunLog(
      database,
      await takeOver(),
      checking(() => {
        throw createLeaseLostError()
      }),
    )
    const looked = request({ class: 'queryable', lookup: async () => null })
    expect(await codeOf(log.effect(call, looked, never))).toBe('lease_lost')
    expect(sent).toHaveLength(1)
  })

  test('gets a last check of its lease, for the moment before the first byte', async ({ database }) => {
    const { takeOver } = await start(database)
    const { sent, request } = provider()
    let isFrozen = false
    const log = createRunLog(
      database,
      await takeOver(),
      checking(() => {
        if (isFrozen) throw createLeaseLostError()
      }),
    )
    const connecting = request({
      async send(_text, _key, lastLook) {
        isFrozen = true
        lastLook()
        sent.push({ request: 'too late', key: '' })
        return 'receipt'
      },
    })
    expect(await codeOf(log.effect(call, connecting, never))).toBe('lease_lost')
    expect(sent).toEqual([])
  })

  test('leaves it to an operator when the provider offers neither keys nor a look-up', async ({
    database,
  }) => {
    const { perform, row, takeOver } = await start(database)
    const { sent, request, dying } = provider()
    await perform(dying({ class: 'manual' })).catch(() => {})
    expect(await codeOf(perform(request({ class: 'manual' }), await takeOver()))).toBe('effect_unknown')
    expect(sent).toHaveLength(1)
    expect((await row())?.status).toBe('unknown')
  })

  test('sends it for the first time when only the intent stands', async ({ database }) => {
    const { perform, takeOver } = await start(database)
    const { sent, request } = provider()
    const aborted = AbortSignal.abort(new Error('stopped'))
    const { run } = { run: await takeOver() }
    await performEffect(database, run, call, request({ class: 'manual' }), aborted).catch(() => {})
    expect(sent).toHaveLength(0)
    expect((await perform(request({ class: 'manual' }), run)).response).toBe('receipt 1')
  })
})

describe('a worker that has lost the run', () => {
  test('neither writes an intent nor sends', async ({ database }) => {
    const { run, perform, takeOver } = await start(database)
    const { sent, request } = provider()
    await takeOver()
    expect(await codeOf(perform(request(), run))).toBe('lease_lost')
    expect(await count(database, 'effects WHERE run_id = $1', [run.run_id])).toBe(0)
    expect(sent).toHaveLength(0)
  })

  test('does not send either when it loses the run between intent and sending', async ({ database }) => {
    const { run, takeOver } = await start(database)
    const { sent, request } = provider()
    let statements = 0
    const losing = {
      async query<Row>(text: string, values?: readonly unknown[]) {
        if (++statements === 2) await takeOver()
        return database.query<Row>(text, values)
      },
    }
    expect(await codeOf(performEffect(losing, run, call, request(), never))).toBe('lease_lost')
    expect(sent).toHaveLength(0)
  })

  test('that is unknown is sent again only once an operator has said so, under the same key, and each time anew', async ({
    database,
  }) => {
    const { run, perform, takeOver, row } = await start(database)
    const { sent, request, dying } = provider()
    const manual = request({ class: 'manual' })
    const effects = createUnknownEffects(database)
    await perform(dying({ class: 'manual' })).catch(() => {})
    let fence = await takeOver()
    for (const sends of [1, 2]) {
      expect(await codeOf(perform(manual, fence))).toBe('effect_unknown')
      expect(await row()).toMatchObject({ status: 'unknown', sends })
      const { effect_id } = (await row()) as unknown as { effect_id: string }
      expect(await codeOf(effects.resolve(effect_id, { took_place: false }))).toBe('in_use')
      const wait = { kind: 'effect' as const, refId: effect_id }
      const [state] = (await startWaits(database, fence, call, -sends, [wait])) ?? []
      expect(state?.outcome).toBeNull()
      expect(await effects.resolve(effect_id, { took_place: false })).toMatchObject({ status: 'intent' })
      expect(await codeOf(effects.resolve(effect_id, { took_place: false }))).toBe('input_answered')
      expect(await codeOf(perform(manual, run))).toBe('lease_lost')
      await perform(dying({ class: 'manual' }), fence).catch(() => {})
      fence = await takeOver()
    }
    expect(sent.map(({ key }) => key)).toEqual(Array(3).fill(sent[0]?.key))
    expect(await codeOf(perform(manual, fence))).toBe('effect_unknown')
  })

  test('that is refused by the error of another copy of Mason is refused', async ({ database }) => {
    const { perform, row } = await start(database)
    const foreign = Object.assign(new Error('card expired'), { code: 'effect_refused' })
    const send = () => Promise.reject(foreign)
    const { request } = provider()
    await expect(perform(request({ class: 'manual', send }))).rejects.toBeInstanceOf(EffectRefusedError)
    expect(await row()).toMatchObject({ status: 'refused', error: 'card expired' })
  })

  test('that is refused stays so for a worker that takes over, with its reason', async ({ database }) => {
    const { perform, row, takeOver } = await start(database)
    const { sent, request } = provider()
    const refuses = async (): Promise<string> => {
      throw new EffectRefusedError('card expired')
    }
    const refused = new EffectRefusedError('card expired')
    await expect(perform(request({ class: 'manual', send: refuses }))).rejects.toEqual(refused)
    expect(await row()).toMatchObject({ status: 'refused', error: 'card expired', sends: 1 })
    await expect(perform(request(), await takeOver())).rejects.toEqual(refused)
    expect(sent).toEqual([])
  })
})
