import { expect, test } from 'vitest'
import { createThreadShares } from '../../../src/engine/worker/thread-shares.ts'

/** Shares whose clock and load are set by the test. */
const openShares = () => {
  let now = 0
  let busy = 1
  const shares = createThreadShares(
    () => now,
    () => busy,
  )
  return {
    shares,
    waits: () => Object.fromEntries(shares.listWaits()),
    limit: (business: string, ...waiting: string[]) =>
      shares.limitVisits(business, 8, (other) => waiting.includes(other)),
    pass(ms: number, share = busy) {
      busy = share
      now += ms
    },
  }
}

test('a business whose run found no model waits after each claim while another is at work, and the other does not', () => {
  const { shares, waits, pass } = openShares()
  shares.unserved('flood')
  shares.claimed('other')
  shares.claimed('flood')
  expect(waits()).toEqual({ flood: 40 })
  pass(30)
  expect(waits()).toEqual({ flood: 10 })
  pass(10)
  expect(waits()).toEqual({})
})

test('a business whose runs find models never waits, whatever it does beside others', () => {
  const { shares, waits, pass } = openShares()
  for (let n = 0; n < 20; n++) {
    shares.unserved('flood')
    shares.claimed('flood')
    shares.claimed('busy')
    shares.worked('busy')
    expect(Object.keys(waits())).not.toContain('busy')
    pass(50)
  }
})

test('a business alone never waits, and neither do businesses of which none finds a model', () => {
  const { shares, waits } = openShares()
  shares.unserved('flood')
  shares.claimed('flood')
  expect(waits()).toEqual({})
  shares.unserved('another')
  shares.claimed('another')
  expect(waits()).toEqual({})
})

test('what was a while ago counts no more: work after half a second, a run without a model after five', () => {
  const { shares, waits, pass } = openShares()
  shares.unserved('flood')
  shares.claimed('other')
  pass(501)
  shares.claimed('flood')
  expect(waits()).toEqual({})
  pass(4500)
  shares.worked('other')
  shares.claimed('flood')
  expect(waits()).toEqual({})
})

test('the gap doubles while the thread is busy and halves while it is not, between limits', () => {
  const { shares, waits, pass } = openShares()
  const gaps = (share: number, windows: number): (number | undefined)[] =>
    Array.from({ length: windows }, () => {
      pass(100, share)
      shares.unserved('flood')
      shares.worked('other')
      shares.claimed('flood')
      return waits().flood
    })
  expect(gaps(0.9, 4)).toEqual([80, 160, 160, 160])
  expect(gaps(0.3, 7)).toEqual([80, 40, 20, 10, 5, 5, 5])
  expect(gaps(0.7, 2)).toEqual([10, 20])
})

test('a business has the fewer visits at once the busier the thread is, while another is at work', () => {
  const { shares, limit, pass } = openShares()
  const limits = (share: number, windows: number): number[] =>
    Array.from({ length: windows }, () => {
      pass(100, share)
      shares.worked('flood')
      shares.worked('other')
      return limit('flood')
    })
  shares.worked('other')
  expect(limit('flood')).toBe(1)
  expect(limits(0.3, 4)).toEqual([2, 4, 8, 8])
  expect(limits(0.9, 6)).toEqual([4, 2, 1, 1, 1, 1])
})

test('a business alone has all visits, as it has beside one that was at work a while ago or that finds no model', () => {
  const { shares, limit, pass } = openShares()
  shares.worked('flood')
  expect(limit('flood')).toBe(8)
  shares.worked('other')
  pass(501)
  shares.worked('flood')
  expect(limit('flood')).toBe(8)
  shares.unserved('other')
  shares.worked('other')
  expect([limit('flood'), limit('other')]).toEqual([8, 1])
})

test('businesses of which all have visits that wait share the whole thread', () => {
  const { shares, limit } = openShares()
  shares.worked('one')
  shares.worked('two')
  expect([limit('one'), limit('two')]).toEqual([1, 1])
  expect([limit('one', 'one', 'two'), limit('two', 'one', 'two')]).toEqual([8, 8])
})
