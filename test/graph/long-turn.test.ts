import { expect, test } from 'vitest'
import { foldActions } from '../../src/state/fold.ts'
import { answer, body, plan } from '../support/actions.ts'
import { memoryRun, modelsOf, workOn } from '../support/memory-run.ts'
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

/** The same rows, counting how often anybody looks into what an action brought or where it leads. */
const counting = (rows: ReturnType<typeof longTurn>) => {
  const looks = { count: 0 }
  const counted = <T extends object>(value: T): T =>
    new Proxy(value, {
      get(target, key, receiver) {
        looks.count++
        return Reflect.get(target, key, receiver)
      },
    })
  const watched = rows.map((row) => ({
    ...row,
    body: { ...row.body, result: counted(row.body.result), next: counted(row.body.next) },
  }))
  return { looks, watched }
}

/** How often the actions of a turn are looked into for each of ten steps that are taken on top of them. */
const looksOfStep = async (size: number): Promise<number> => {
  const graph = await graphWith([callTool('look', ({ n }) => `new ${n}`)])
  const memory = memoryRun({ prompt: 'x', limits: { max_steps: 20_000 } })
  const { looks, watched } = counting(longTurn(size))
  memory.rows = watched
  const marks: number[] = []
  const models = modelsOf(({ role }, nth) => {
    if (role !== 'planner') return { text: '' }
    marks.push(looks.count)
    return nth > 11 ? { text: 'Enough.' } : { tool_calls: [{ name: 'look', arguments: { n: nth } }] }
  })
  await workOn(graph, memory, { models })
  expect(memory.ended?.result.answer).toBe('Enough.')
  return ((marks.at(-1) ?? 0) - (marks[0] ?? 0)) / 11
}

test('a turn with ten times the actions is read no more often by the next step', async () => {
  const [short, long] = [await looksOfStep(900), await looksOfStep(9000)]
  expect(long).toBeLessThanOrEqual(short * 1.1 + 1)
})

test('taking over a long turn costs time in proportion to its rows', () => {
  const looksOf = (size: number): number => {
    const { looks, watched } = counting(longTurn(size))
    foldActions(watched)
    return looks.count / size
  }
  expect(looksOf(10_000)).toBeLessThanOrEqual(looksOf(1000) * 1.1)
  const rows = longTurn(10_000)
  const state = foldActions(rows)
  expect(state.action_history[0]).toHaveLength(rows.length)
  expect(state.action_history[0]?.[2]?.relevance).toBe(0.7)
})
