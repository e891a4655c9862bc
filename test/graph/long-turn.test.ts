import { expect, test } from 'vitest'
import { fold } from '../../src/state/fold.ts'
import { answer, body, plan } from '../support/actions.ts'
import { memoryRun, planners, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

/** A turn of about this many actions that is still at work. */
const longTurn = (size: number) => {
  const bodies = [body('load-session', { next: ['planner'] })]
  for (let n = 0; bodies.length < size; n++) {
    const judged = [{ id: bodies.length + 2, relevance: 0.7, important: true }]
    bodies.push(
      plan([{ tool: 'look', args: { n: -n } }]),
      answer('look', 0, { text: `${n} ${'x'.repeat(300)}` }),
      body('reflection', { next: ['planner'], result: { is_sufficient: true, knowledge_gap: '', judged } }),
    )
  }
  return bodies.map((one, at) => ({
    seq: at + 1,
    turn: 1,
    body: one,
    patch: at === 0 ? { prompts: 'x' } : {},
  }))
}

test('thousands of actions make the next one no slower than its prompt', async () => {
  const graph = await graphWith([callTool('look', ({ n }) => `new ${n}`)])
  const memory = memoryRun({ prompt: 'x', limits: { max_steps: 20_000 } })
  memory.rows = longTurn(9000)
  const before = memory.rows.length
  const looks = Array.from(
    { length: 10 },
    (_, n): Said => ({ tool_calls: [{ name: 'look', arguments: { n } }] }),
  )
  const models = planners(...looks, { text: 'Enough.' })
  const since = performance.now()
  await workOn(graph, memory, { models })
  // it was 100 ms an action when the router copied the state along; 3 to 8 ms now
  expect((performance.now() - since) / (memory.rows.length - before)).toBeLessThan(50)
  expect(memory.ended?.result.answer).toBe('Enough.')
})

test('taking over a long turn costs time in proportion to its rows', () => {
  const rows = longTurn(10_000)
  const since = performance.now()
  const state = fold(rows)
  expect(performance.now() - since).toBeLessThan(1000)
  expect(state.action_history[0]).toHaveLength(rows.length)
  expect(state.action_history[0]?.[2]?.relevance).toBe(0.7)
})
