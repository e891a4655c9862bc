// tier: all
import { describe, expect, test } from 'vitest'
import { reachRows } from '../../bench/report/reach/reach.ts'
import { latencies, median, spreadOf } from '../../bench/support/statistics.ts'

const rowOf = (ms: number, rawMs: number) => {
  const figures = (value: number) => ({ 'ms per action': spreadOf([value]) })
  const [row] = reachRows({
    append: { Mason: figures(ms), 'one connection, one row a commit': figures(rawMs) },
  })
  return row
}

describe('the table of targets', () => {
  test('the table calls a line reached only when each of its figures is', () => {
    expect(rowOf(1.1, 0.5)?.verdict).toBe('reached')
    expect(rowOf(1.3, 0.9)?.verdict).toBe('not reached')
    expect(rowOf(1.1, 0.4)?.verdict).toBe('not reached')
    expect(rowOf(0.6, 0.5)?.verdict).toBe('stretch reached')
  })

  test('the table gives each measurement and its targets', () => {
    expect(rowOf(1.1, 0.5)).toMatchObject({
      measured: '1.1 ms, 2.2 x one connection, one row a commit',
      reach: '<= 1.2 ms, <= 2.5 x one connection, one row a commit',
      stretch: '<= 0.7 ms, <= 1.5 x one connection, one row a commit',
      cases: ['append'],
    })
  })

  test('the table calls a line without figures not measured', () => {
    const verdicts = reachRows({}).map(({ verdict }) => verdict)
    expect(new Set(verdicts)).toEqual(new Set(['not measured']))
  })

  test('the table takes a higher figure for better where more is better', () => {
    const rowsAt = (perSecond: number) =>
      reachRows({ accept: { 'Redis up': { 'POST/s': spreadOf([perSecond]) } } }).find(
        ({ what }) => what === 'durable accept, Redis up',
      )
    expect(rowsAt(2100)?.verdict).toBe('reached')
    expect(rowsAt(1900)?.verdict).toBe('not reached')
  })

  test('the table compares the OpenAI-compatible endpoint with its vendor by added latency and retained throughput', () => {
    const endpointAt = (p50: number, perSecond: number) => {
      const side = (ms: number, answers: number) => ({
        'ms p50': spreadOf([ms]),
        'answers/s of 64': spreadOf([answers]),
      })
      const variants = { Mason: side(p50, perSecond), 'the vendor itself': side(0.2, 300) }
      return reachRows({ 'openai-endpoint': variants }).find(({ what }) =>
        what.includes('OpenAI-compatible endpoint'),
      )
    }
    expect(endpointAt(1.1, 270)).toMatchObject({
      measured: '0.9 ms p50 added, 90 % of its answers/s',
      reach: '<= 1 ms p50 added, >= 80 % of its answers/s',
      verdict: 'reached',
    })
    expect(endpointAt(1.3, 270)?.verdict).toBe('not reached')
    expect(endpointAt(1.1, 230)?.verdict).toBe('not reached')
  })
})

test('repetitions are reported as median, lowest and highest', () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 })
  expect(median([4, 1, 2, 3])).toBe(2.5)
  const hundred = Array.from({ length: 100 }, (_, n) => n + 1)
  expect(latencies(hundred)).toEqual({ 'ms p50': 51, 'ms p99': 100 })
})
