import { expect, test } from 'vitest'
import { createClaimPace } from '../../../src/engine/worker/claim-pace.ts'

/** A pace whose clock and load are set by the test. */
const openPace = () => {
  let now = 0
  let busy = 1
  const pace = createClaimPace(
    () => now,
    () => busy,
  )
  return {
    pace,
    waits: () => Object.fromEntries(pace.listWaits()),
    pass(ms: number, share = busy) {
      busy = share
      now += ms
    },
  }
}

test('a business whose run found no model waits after each claim while another is at work, and the other does not', () => {
  const { pace, waits, pass } = openPace()
  pace.unserved('flood')
  pace.claimed('other')
  pace.claimed('flood')
  expect(waits()).toEqual({ flood: 40 })
  pass(30)
  expect(waits()).toEqual({ flood: 10 })
  pass(10)
  expect(waits()).toEqual({})
})

test('a business whose runs find models never waits, whatever it does beside others', () => {
  const { pace, waits, pass } = openPace()
  for (let n = 0; n < 20; n++) {
    pace.unserved('flood')
    pace.claimed('flood')
    pace.claimed('busy')
    pace.worked('busy')
    expect(Object.keys(waits())).not.toContain('busy')
    pass(50)
  }
})

test('a business alone never waits, and neither do businesses of which none finds a model', () => {
  const { pace, waits } = openPace()
  pace.unserved('flood')
  pace.claimed('flood')
  expect(waits()).toEqual({})
  pace.unserved('another')
  pace.claimed('another')
  expect(waits()).toEqual({})
})

test('what was a while ago counts no more: work after half a second, a run without a model after five', () => {
  const { pace, waits, pass } = openPace()
  pace.unserved('flood')
  pace.claimed('other')
  pass(501)
  pace.claimed('flood')
  expect(waits()).toEqual({})
  pass(4500)
  pace.worked('other')
  pace.claimed('flood')
  expect(waits()).toEqual({})
})

test('the gap doubles while the thread is busy and halves while it is not, between limits', () => {
  const { pace, waits, pass } = openPace()
  const gaps = (share: number, windows: number): (number | undefined)[] =>
    Array.from({ length: windows }, () => {
      pass(100, share)
      pace.unserved('flood')
      pace.worked('other')
      pace.claimed('flood')
      return waits().flood
    })
  expect(gaps(0.9, 4)).toEqual([80, 160, 160, 160])
  expect(gaps(0.3, 7)).toEqual([80, 40, 20, 10, 5, 5, 5])
  expect(gaps(0.7, 2)).toEqual([10, 20])
})
