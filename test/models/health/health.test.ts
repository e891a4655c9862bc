import { describe, expect, test } from 'vitest'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { createModelHealth, type FailureContext } from '../../../src/models/health/model-health.ts'
import type { FailureSource, HealthSubject } from '../../../src/models/ports/call-ports.ts'
import { createJumpingClock } from '../../support/jumping-clock.ts'

const of = (
  business: string,
  prompt: string,
  run: string | null = `run ${business} ${prompt}`,
): FailureSource => ({
  ...{ business, run, prompt: () => prompt },
})
const cool = { kind: 'cool', code: 'model_unavailable', message: 'answered 500' } as const

const open = () => {
  // each reading is a microsecond later: only jumps decide
  let ms = 0
  const clock = createJumpingClock(() => (ms += 0.001))
  const health = createModelHealth({ sql: null, hints: null, clock, log: silentLog, random: () => 0 })
  const fail = (
    source: FailureSource,
    more: Partial<FailureContext> = {},
    subject: HealthSubject = 'model',
  ) => health.failed(subject, 'x', cool, { isProbe: false, source, ...more })
  const stateFor = (source?: FailureSource, subject: HealthSubject = 'model') =>
    health.stateOf(subject, 'x', source)?.state ?? 'healthy'
  const good = (source: FailureSource, subject: HealthSubject = 'model') =>
    health.succeeded(subject, 'x', { isProbe: false, source })
  return { clock, health, fail, stateFor, good }
}

describe('a shared subject', () => {
  test('is not closed by any number of failures of one prompt', () => {
    const { fail, stateFor } = open()
    for (let n = 0; n < 20; n++) fail(of('a', 'poison'))
    for (let n = 0; n < 20; n++) fail(of('a', 'poison', `run ${n}`))
    expect(stateFor(of('a', 'poison'))).toBe('healthy')
    expect(stateFor()).toBe('healthy')
  })

  test('is closed for one business by two of its prompts, and for no other', () => {
    const { fail, stateFor } = open()
    for (let n = 0; n < 200; n++) fail(of('a', `poison ${n}`))
    expect(stateFor(of('a', 'good'))).toBe('cooling')
    expect(stateFor(of('b', 'good'))).toBe('healthy')
  })

  test('is closed for all by the prompts of two businesses', () => {
    const { fail, stateFor } = open()
    fail(of('a', 'one'))
    fail(of('b', 'two'))
    for (const business of ['a', 'b', 'c']) expect(stateFor(of(business, 'three'))).toBe('cooling')
  })

  test('is not closed for all by two businesses with a success between', () => {
    const { fail, good, stateFor } = open()
    for (let n = 0; n < 5; n++) fail(of('a', `poison ${n}`))
    good(of('b', 'fine'))
    fail(of('b', 'a blip'))
    expect(stateFor(of('c', 'good'))).toBe('healthy')
    expect(stateFor(of('b', 'good'))).toBe('healthy')
  })

  test('is closed for its own prompt alone by a strong failure, until the wait is over', () => {
    const { clock, fail, stateFor, health } = open()
    fail(of('a', 'one'), { isStrong: true })
    expect(stateFor(of('a', 'one'))).toBe('cooling')
    expect(stateFor(of('a', 'two'))).toBe('healthy')
    clock.jump(1000)
    expect(health.stateOf('model', 'x', of('a', 'one'))?.due).toBe(true)
  })

  test('is closed for all at once by what no request can cause', () => {
    const { health, stateFor } = open()
    health.failed('key', 'x', { ...cool, kind: 'disable' }, { isProbe: false })
    expect(stateFor(of('b', 'good'), 'key')).toBe('disabled')
  })

  test.each<HealthSubject>(['endpoint', 'key'])('%s: needs two models within ten seconds', (subject) => {
    const { clock, fail, stateFor, good } = open()
    const failBoth = (model: string) => {
      fail(of('a', 'one'), { model }, subject)
      fail(of('b', 'two'), { model }, subject)
    }
    failBoth('m1')
    expect(stateFor(of('c', 'good'), subject)).toBe('healthy')
    clock.jump(11_000)
    failBoth('m2')
    expect(stateFor(of('c', 'good'), subject)).toBe('healthy')
    good(of('c', 'good'), subject)
    fail(of('a', 'one'), { model: 'm1' }, subject)
    expect(stateFor(of('c', 'good'), subject)).toBe('healthy')
    fail(of('b', 'two'), { model: 'm2' }, subject)
    expect(stateFor(of('c', 'good'), subject)).toBe('cooling')
  })
})

describe('a closed subject', () => {
  const closed = () => {
    const opened = open()
    opened.fail(of('a', 'one'))
    opened.fail(of('b', 'two'))
    return opened
  }

  test('cools for half of its time at least, and the only one of a route for 5 s at most', () => {
    const { health, clock, fail } = closed()
    expect(health.dueInMs('model', 'x')).toBeGreaterThan(499)
    for (let n = 0; n < 10; n++) {
      clock.jump(600_000)
      fail(of('c', `probe ${n}`), { isProbe: true })
    }
    expect(health.dueInMs('model', 'x')).toBeGreaterThan(29_000)
    clock.jump(600_000)
    fail(of('c', 'last'), { isProbe: true, isOnly: true })
    expect(health.dueInMs('model', 'x')).toBeLessThanOrEqual(5000)
  })

  test('is probed first by those that have not failed there', () => {
    const { health, clock } = closed()
    clock.jump(510)
    expect(health.stateOf('model', 'x', of('c', 'good'))?.due).toBe(true)
    expect(health.stateOf('model', 'x', of('a', 'one'))?.due).toBe(false)
    clock.jump(1000)
    expect(health.stateOf('model', 'x', of('a', 'one'))?.due).toBe(true)
  })

  test('gives all probes of a candidate to one call, or none', async () => {
    const { health, clock } = closed()
    const refs = [
      { subject: 'model', id: 'x' },
      { subject: 'key', id: 'x' },
    ] as const
    health.failed('key', 'x', { ...cool, retryAfterMs: 60_000 }, { isProbe: false })
    clock.jump(1000)
    expect(await health.claim(refs, 5000)).toBe(false)
    expect(health.stateOf('model', 'x')).toMatchObject({ state: 'cooling', due: true })
    clock.jump(60_000)
    expect(await Promise.all([health.claim(refs, 5000), health.claim(refs, 5000)])).toEqual([true, false])
    health.succeeded('model', 'x', { isProbe: true })
    expect(health.stateOf('model', 'x')).toBeNull()
  })

  test('for one business is over once it is due and another succeeds there', () => {
    const { fail, good, clock, stateFor } = open()
    for (const prompt of ['one', 'two']) fail(of('a', prompt))
    good(of('b', 'good'))
    expect(stateFor(of('a', 'three'))).toBe('cooling')
    clock.jump(1000)
    good(of('b', 'good'))
    expect(stateFor()).toBe('healthy')
  })
})
