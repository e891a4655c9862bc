import { expect, test } from 'vitest'
import { createClaimPace } from '../../../src/engine/worker/claim-pace.ts'

/** A pace whose clock and load are set by the test; `runs` is what the worker has of each business. */
const openPace = (runs: Record<string, number>) => {
  let now = 0
  let busy = 1
  const pace = createClaimPace(
    () => now,
    () => busy,
  )
  return {
    pace,
    waits: () => Object.fromEntries(pace.listWaits((business) => runs[business] ?? 0)),
    pass(ms: number, share = busy) {
      busy = share
      now += ms
    },
  }
}

test('a business that has more runs than another at work waits after each claim, and the other does not', () => {
  const { pace, waits, pass } = openPace({ flood: 20, other: 1 })
  pace.claimed('other')
  pace.claimed('flood')
  expect(waits()).toEqual({ flood: 40 })
  pass(30)
  expect(waits()).toEqual({ flood: 10 })
  pass(10)
  expect(waits()).toEqual({})
})

test('a business alone never waits, whatever it has and however busy the thread is', () => {
  const { pace, waits, pass } = openPace({ flood: 200 })
  for (let n = 0; n < 20; n++) {
    pace.claimed('flood')
    pace.worked('flood')
    expect(waits()).toEqual({})
    pass(50)
  }
})

test('a business whose last claim or action was a while ago is not at work: its runs wait for models', () => {
  const { pace, waits, pass } = openPace({ flood: 20, other: 1 })
  pace.claimed('other')
  pass(400)
  pace.worked('other')
  pass(400)
  pace.claimed('flood')
  expect(Object.keys(waits())).toEqual(['flood'])
  pass(101)
  pace.claimed('flood')
  expect(waits()).toEqual({})
})

test('one run is never held up, and of businesses with as many runs none is', () => {
  const one = openPace({ first: 1, second: 0 })
  one.pace.claimed('second')
  one.pace.claimed('first')
  expect(one.waits()).toEqual({})
  const equal = openPace({ first: 50, second: 50 })
  equal.pace.claimed('first')
  equal.pace.claimed('second')
  expect(equal.waits()).toEqual({})
})

test('the gap doubles while the thread is busy and halves while it is not, between limits', () => {
  const { pace, waits, pass } = openPace({ flood: 20, other: 1 })
  const gaps = (share: number, windows: number): (number | undefined)[] =>
    Array.from({ length: windows }, () => {
      pass(100, share)
      pace.worked('other')
      pace.claimed('flood')
      return waits().flood
    })
  expect(gaps(0.9, 4)).toEqual([80, 160, 160, 160])
  expect(gaps(0.3, 7)).toEqual([80, 40, 20, 10, 5, 5, 5])
  expect(gaps(0.7, 2)).toEqual([10, 20])
})
