import { describe, expect, test } from 'vitest'
import { sendCallEffect } from '../../src/graph/call-effect.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { EffectRequest, EffectResult } from '../../src/state/ports/effects.ts'
import type { PersonAnswer, Question } from '../../src/state/ports/questions.ts'
import type { RunLog } from '../../src/state/ports/run-log.ts'

const call = { plan_seq: 3, index: 0 }
const never = new AbortController().signal
const request: EffectRequest = {
  class: 'keyed',
  windowMs: 1000,
  request: 'pay 5',
  send: async () => 'receipt',
}
const unknown = new MasonError('effect_unknown', 'it is not known', { detail: { effect_id: 'e1' } })
const lost = new Error('the line broke')

/** A ledger with scripted answers, and the calls it received. */
const ledger = (...answers: (Error | string)[]) => {
  const seen: { class: string; resend: boolean }[] = []
  const effect: RunLog['effect'] = async (
    _call,
    { class: kind },
    _signal,
    options,
  ): Promise<EffectResult> => {
    seen.push({ class: kind, resend: options?.resend ?? false })
    const answer = answers.shift()
    if (answer instanceof Error) throw answer
    return { effect_id: 'e1', response: String(answer) }
  }
  return { seen, log: { effect } as RunLog }
}

const person = (answer: PersonAnswer) => {
  const questions: Question[] = []
  const ask = async (question: Question): Promise<PersonAnswer> => {
    questions.push(question)
    return answer
  }
  return { questions, ask }
}
const says = (answer: string) => person({ kind: 'answered', answer })

describe('a side effect of a call', () => {
  test('that succeeds asks no person', async () => {
    const { seen, log } = ledger('receipt')
    const { questions, ask } = says('it did not')
    expect(await sendCallEffect(log, call, request, ask, never)).toEqual({
      effect_id: 'e1',
      response: 'receipt',
    })
    expect([seen.length, questions.length]).toEqual([1, 0])
  })

  test('whose send threw goes through the ledger again, under the same call', async () => {
    const { seen, log } = ledger(lost, 'receipt')
    expect((await sendCallEffect(log, call, request, says('it did not').ask, never)).response).toBe('receipt')
    expect(seen.map((entry) => entry.class)).toEqual(['keyed', 'keyed'])
  })

  test('that stays unknown is asked of a person, and is not sent again when it took place', async () => {
    const { seen, log } = ledger(lost, lost, unknown)
    const { questions, ask } = says('it took place')
    expect(await sendCallEffect(log, call, request, ask, never)).toEqual({
      effect_id: 'e1',
      response: 'confirmed by a person',
    })
    expect(seen.map((entry) => entry.class)).toEqual(['keyed', 'keyed', 'manual'])
    expect(questions).toMatchObject([{ options: ['it took place', 'it did not'] }])
  })

  test('is sent again when a person says that it did not take place', async () => {
    const { seen, log } = ledger(unknown, 'receipt')
    expect((await sendCallEffect(log, call, request, says('it did not').ask, never)).response).toBe('receipt')
    expect(seen.at(-1)).toEqual({ class: 'keyed', resend: true })
  })

  test('stays unknown when no person answers, or the call has already asked', async () => {
    await expect(
      sendCallEffect(ledger(unknown).log, call, request, person({ kind: 'expired' }).ask, never),
    ).rejects.toBe(unknown)
    await expect(sendCallEffect(ledger(unknown).log, call, request, null, never)).rejects.toBe(unknown)
  })

  test('is abandoned at once when the run is stopped or the lease is lost', async () => {
    const leaseLost = new MasonError('lease_lost', 'another worker has this run')
    const { seen, log } = ledger(leaseLost)
    await expect(sendCallEffect(log, call, request, null, never)).rejects.toBe(leaseLost)
    expect(seen).toHaveLength(1)
    const stopped = ledger(lost)
    await expect(sendCallEffect(stopped.log, call, request, null, AbortSignal.abort())).rejects.toBe(lost)
    expect(stopped.seen).toHaveLength(1)
  })
})
