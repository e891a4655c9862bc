import { describe, expect, test } from 'vitest'
import { defineNode } from '../../src/graph/definitions.ts'
import { foldActions } from '../../src/state/fold.ts'
import { checkInvariants } from '../support/invariants.ts'
import { memoryRun, planners, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const node = (name: string, next: readonly (string | { one: readonly string[] })[], to: readonly string[]) =>
  defineNode({
    name,
    description: name,
    reads: [],
    writes: [],
    next,
    run: (_state, { checkpoint }) => checkpoint({ summary: name, next: [...to] }),
  })

/** A run whose reflection is replaced by a node that leads to these nodes at once. */
const workWith = async (next: Parameters<typeof node>[1], to: readonly string[], diesAfter?: number) => {
  const branches = [node('left', ['planner'], ['planner']), node('right', ['planner'], ['planner'])]
  const graph = await graphWith([callTool('look', () => 'seen')], [node('reflection', next, to), ...branches])
  const memory = memoryRun({ prompt: 'look' })
  const models = () =>
    planners({ tool_calls: [{ id: 'c0', name: 'look', arguments: {} }] }, { text: 'Seen.' })
  const said = models()
  if (diesAfter !== undefined) await workOn(graph, memory, { models: said, diesAfter })
  await workOn(graph, memory, { models: said })
  return { memory, nodes: memory.rows.map(({ body }) => body.node) }
}

describe('nodes that a node visits at once', () => {
  test.each([undefined, 5, 6, 7])(
    'are all visited before the run goes on where they lead, also after a take-over (%s)',
    async (diesAfter) => {
      const { memory, nodes } = await workWith(['left', 'right'], ['left', 'right'], diesAfter)
      expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
      expect(nodes.filter((name) => name === 'left' || name === 'right').toSorted()).toEqual([
        'left',
        'right',
      ])
      expect(nodes.filter((name) => name === 'planner')).toHaveLength(2)
      checkInvariants(foldActions(memory.rows))
    },
  )

  test('fail the run where the node says that it visits one of them at a time', async () => {
    const one = [{ one: ['left', 'right'] }]
    expect((await workWith(one, ['left'])).memory.ended?.outcome.status).toBe('completed')
    const { memory } = await workWith(one, ['left', 'right'])
    expect(memory.ended?.outcome).toMatchObject({ status: 'failed', reason: 'node_failed' })
    expect(JSON.stringify(memory.ended?.result.error)).toMatch(/leads to .*left.* and to others at once/)
  })
})
