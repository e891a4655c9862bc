import { describe, expect, test } from 'vitest'
import { readPlannedCalls } from '../../src/state/calls.ts'
import type { Json } from '../../src/state/runtime-state.ts'
import { action, answer, plan } from '../support/actions.ts'

const call = { index: 0, id: 'c1', tool: 'look', args: { q: ['a', { b: null }] } }
const decided = (calls: Json, next: string[] = ['look']) => action(1, 'planner', { result: { calls }, next })

describe('the calls an action decided on', () => {
  test('are those it names in next', () => {
    expect(readPlannedCalls(decided([call]))).toEqual([call])
    expect(readPlannedCalls({ id: 1, ...plan([{ tool: 'look' }, { tool: 'fetch' }]) })).toHaveLength(2)
    expect(readPlannedCalls(decided([call], ['fetch']))).toEqual([])
    expect(readPlannedCalls(decided([call], []))).toEqual([])
  })

  test.each<[string, Json]>([
    ['no list', { ...call }],
    ['an empty list', []],
    ['no object', ['look']],
    ['nothing', [null]],
    ['a field too many', [{ ...call, more: 1 }]],
    ['a field too few', [{ index: 0, id: 'c1', tool: 'look' }]],
    ['another field in place of one', [{ index: 0, id: 'c1', tool: 'look', input: {} }]],
    ['half an index', [{ ...call, index: 0.5 }]],
    ['an index below zero', [{ ...call, index: -1 }]],
    ['an index that is text', [{ ...call, index: '0' }]],
    ['an empty id', [{ ...call, id: '' }]],
    ['a tool without a name', [{ ...call, tool: '' }]],
    ['arguments that are a list', [{ ...call, args: [] }]],
    ['arguments that are nothing', [{ ...call, args: null }]],
    ['arguments that are text', [{ ...call, args: '{}' }]],
    ['one invalid call', [call, { ...call, index: -1 }]],
  ])('are none where there is %s', (_, calls) => {
    const names = Array.isArray(calls)
      ? calls.map((one) => (one as { tool?: string } | null)?.tool ?? '')
      : []
    expect(readPlannedCalls(decided(calls, names.length > 0 ? names : ['look']))).toEqual([])
  })

  test("are none where a tool's own data has their name", () => {
    expect(readPlannedCalls({ id: 2, ...answer('look', 0, { calls: [call] }), next: ['look'] })).toEqual([])
  })
})
