import { describe, expect, test } from 'vitest'
import { checkWrites, createView } from '../../src/graph/state-view.ts'
import { isMasonError, type MasonError } from '../../src/state/errors.ts'
import { emptyState, type RuntimeState } from '../../src/state/runtime-state.ts'

const part = { name: 'look', reads: ['scenario', 'todos'] as const, writes: ['todos'] }
const state: RuntimeState = { ...emptyState, scenario: 'sales' }

const faultOf = (work: () => unknown): MasonError => {
  try {
    work()
  } catch (error) {
    if (isMasonError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('what a node may see and change', () => {
  const view = createView(part)(state) as RuntimeState

  test('is what it declares', () => {
    expect(view.scenario).toBe('sales')
    expect(() => checkWrites(part, { todos: [] })).not.toThrow()
  })

  test('reading any other field names the node, the field and what to do', () => {
    expect(faultOf(() => view.memory)).toMatchObject({
      code: 'node_failed',
      message: '"look" read state.memory, which it does not declare',
      remedy: "add 'memory' to its reads",
    })
  })

  test('changing any other field names the node, the field and what to do', () => {
    expect(faultOf(() => checkWrites(part, { scenario: 'x' }))).toMatchObject({
      code: 'node_failed',
      message: '"look" changed state.scenario, which it does not declare',
      remedy: "add 'scenario' to its writes",
    })
  })

  test('cannot be widened by taking the view apart', () => {
    expect(JSON.parse(JSON.stringify(view))).toEqual({})
    expect({ ...view }).toEqual({})
  })
})
