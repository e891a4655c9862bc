import { describe, expect, test } from 'vitest'
import { sendCallEffect } from '../../src/graph/call-effect.ts'
import { EffectRefusedError, MasonError } from '../../src/state/errors.ts'
import type { EffectRequest, EffectResult, UnknownEffect } from '../../src/state/ports/effects.ts'
import type { RunLog } from '../../src/state/ports/run-log.ts'

const call = { plan_seq: 3, index: 0 }
const never = new AbortController().signal
const request: EffectRequest = {
  class: 'keyed',
  windowMs: 1000,
  request: 'pay 5',
  send: async () => 'receipt',
}
const unknown = new MasonError('effect_unknown', 'it is not known', { detail: { effect_id: 'e1', sends: 1 } })
const lost = new Error('the line broke')

/** A ledger with scripted answers, and the calls it received. */
const ledger = (...answers: (Error | string)[]) => {
  const seen: { class: string; error: string | undefined }[] = []
  const effect: RunLog['effect'] = async (
    _call,
    { class: kind },
    _signal,
    options,
  ): Promise<EffectResult> => {
    seen.push({ class: kind, error: options?.error })
    const answer = answers.shift()
    if (answer instanceof Error) throw answer
    return { effect_id: 'e1', response: String(answer) }
  }
  return { seen, log: { effect } as RunLog }
}

/** Whether an operator settles the effect in time, and what they were asked. */
const operator = (settles: boolean) => {
  const waits: UnknownEffect[] = []
  const wait = async (effect: UnknownEffect): Promise<boolean> => {
    waits.push(effect)
    return settles
  }
  return { waits, wait }
}

describe('a side effect of a call', () => {
  test('that succeeds needs no operator', async () => {
    const { seen, log } = ledger('receipt')
    const { waits, wait } = operator(true)
    expect(await sendCallEffect(log, call, request, wait, never)).toEqual({
      effect_id: 'e1',
      response: 'receipt',
    })
    expect([seen.length, waits.length]).toEqual([1, 0])
  })

  test('whose send threw goes through the ledger again, under the same call', async () => {
    const { seen, log } = ledger(lost, 'receipt')
    expect((await sendCallEffect(log, call, request, operator(true).wait, never)).response).toBe('receipt')
    expect(seen.map((entry) => entry.class)).toEqual(['keyed', 'keyed'])
  })

  test('that stays unknown waits for an operator with what the send threw, and then has their response', async () => {
    const { seen, log } = ledger(lost, lost, unknown, 'confirmed')
    const { waits, wait } = operator(true)
    expect(await sendCallEffect(log, call, request, wait, never)).toEqual({
      effect_id: 'e1',
      response: 'confirmed',
    })
    expect(seen).toEqual([
      { class: 'keyed', error: undefined },
      { class: 'keyed', error: 'the line broke' },
      { class: 'manual', error: 'the line broke' },
      { class: 'keyed', error: undefined },
    ])
    expect(waits).toEqual([{ effect_id: 'e1', sends: 1 }])
  })

  test('that is refused is neither sent again nor for an operator', async () => {
    const refused = new EffectRefusedError('card expired')
    const { seen, log } = ledger(refused)
    const { waits, wait } = operator(true)
    await expect(sendCallEffect(log, call, request, wait, never)).rejects.toBe(refused)
    expect([seen.length, waits.length]).toEqual([1, 0])
  })

  test('of which a tool cannot say what happened is for the ledger to find unknown', async () => {
    const cannotSay = new MasonError('effect_unknown', 'the agent cannot say')
    const { seen, log } = ledger(cannotSay, cannotSay, unknown)
    const { waits, wait } = operator(false)
    await expect(sendCallEffect(log, call, request, wait, never)).rejects.toBe(unknown)
    expect([seen.length, waits.length]).toEqual([3, 1])
  })

  test('stays unknown when no operator settles it in time', async () => {
    await expect(
      sendCallEffect(ledger(unknown).log, call, request, operator(false).wait, never),
    ).rejects.toBe(unknown)
  })

  test('is abandoned at once when the run is stopped or the lease is lost', async () => {
    const leaseLost = new MasonError('lease_lost', 'another worker has this run')
    const { seen, log } = ledger(leaseLost)
    const { wait } = operator(false)
    await expect(sendCallEffect(log, call, request, wait, never)).rejects.toBe(leaseLost)
    expect(seen).toHaveLength(1)
    const stopped = ledger(lost)
    await expect(sendCallEffect(stopped.log, call, request, wait, AbortSignal.abort())).rejects.toBe(lost)
    expect(stopped.seen).toHaveLength(1)
  })
})
