import { describe, expect, test } from 'vitest'
import { computePromptBudget } from '../../src/context/budget.ts'
import { findCompactable, isCompactionDue, summarizeByRules } from '../../src/context/compaction.ts'
import { MasonError } from '../../src/state/errors.ts'
import { foldActions } from '../../src/state/fold.ts'
import type { ModelRequest, Models } from '../../src/state/ports/models.ts'
import { estimateTokens } from '../../src/state/text/tokens.ts'
import { answer, body, plan, stateOf } from '../support/actions.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type MemoryRun, memoryRun, modelsOf, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const window = { context: 16_000, output: 1000 }
const steps = 14

/** A run of many steps on a model with a small window, whose compaction model says this. */
const longRun = async (said: Said | Error, offline = false) => {
  const graph = await graphWith([callTool('look', ({ n }) => `found ${n}: ${'word '.repeat(500)}`)])
  const memory = memoryRun({ prompt: 'Look at all of them' })
  const models = modelsOf(({ role }, nth) => {
    if (role === 'compaction') return said
    if (role !== 'planner') return { text: '' }
    return nth > steps ? { text: 'Done.' } : { tool_calls: [{ name: 'look', arguments: { n: nth } }] }
  })
  const small: Models = {
    ...models,
    window: () => window,
    describe: () => ({ name: 'small', capabilities: offline ? ['rules-only'] : [], base_url: null }),
  }
  const { state } = await workOn(graph, memory, { models: small })
  return { memory, state, requests: models.requests, compactions: compactionsOf(memory) }
}
const compactionsOf = ({ rows }: MemoryRun) => rows.filter((row) => row.body.node === 'compaction')
const promptOf = (request: ModelRequest | undefined): string =>
  (request?.messages ?? []).map(({ content }) => content).join('\n')

describe('compaction', () => {
  test('sums up a long turn as an ordinary action; later prompts show its summary in place of the rest', async () => {
    const { state, requests, compactions, memory } = await longRun({
      text: JSON.stringify({ summary: 'All of them were found [action 4].' }),
    })
    checkInvariants(state)
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
    expect(compactions.length).toBeGreaterThan(0)
    expect(compactions[0]?.body).toMatchObject({
      result: { by: 'model' },
      usage: { total_tokens: 15 },
      next: ['planner'],
    })
    const last = promptOf(requests.findLast(({ role }) => role === 'planner'))
    expect(last).toMatch(/# Session summary\n<data-\w+ agent>\nAll of them were found/)
    expect(last).not.toContain('found 1: word')
    expect(last).toContain(`found ${steps}: word`)
    // the log keeps what the prompt no longer shows
    expect(JSON.stringify(memory.rows)).toContain('found 1: word')
    for (const request of requests)
      expect(estimateTokens(promptOf(request))).toBeLessThanOrEqual(computePromptBudget('planner', window))
  })

  test('comes at most once for so many tokens, however the run goes on', async () => {
    const { compactions, state } = await longRun({ text: JSON.stringify({ summary: 'short' }) })
    const ids = compactions.map(({ seq }) => seq)
    // each step is about 630 tokens and four actions; a compaction waits for 3200 tokens beside the three latest steps
    for (const [at, id] of ids.slice(1).entries()) expect(id - (ids[at] ?? 0)).toBeGreaterThan(12)
    expect(state.action_history[0]?.filter(({ next }) => next.includes('compaction'))).toHaveLength(
      ids.length,
    )
  })

  test.each([
    ['cannot be reached', new MasonError('model_unavailable', 'down')],
    ['writes no JSON', { text: 'Well.' }],
    ['gives an empty summary', { text: '{"summary":"  "}' }],
  ])('is made by rules when its model %s', async (_, said) => {
    const { state, compactions, memory } = await longRun(said)
    checkInvariants(state)
    expect(memory.ended?.outcome.reason).toBe('answered')
    expect(compactions[0]?.body.result.by).toBe('rules')
    expect(compactions[0]?.body.result.text).toMatch(
      /^- action \d+ \(turn 1\): look \{"n":(\d+)\}: found \1: word/,
    )
  })

  test('asks no model where there are only rules', async () => {
    const { requests, compactions } = await longRun(new Error('no model is called'), true)
    expect(compactions.length).toBeGreaterThan(0)
    expect(requests.filter(({ role }) => role === 'compaction')).toEqual([])
  })

  test('covers what came before a turn that never began, and so is not due again at once', () => {
    const said = (turn: number, seq: number) => {
      const chat_history = [{ role: 'user' as const, content: 'word '.repeat(700), turn }]
      return { seq, turn, body: body('load-session'), patch: { prompts: 'Go on', chat_history } }
    }
    const rows = [said(1, 1), said(3, 2), said(4, 3), said(5, 4)]
    const state = foldActions(rows)
    expect(state.action_history[1]).toEqual([])
    expect(isCompactionDue(state, 1000)).toBe(true)
    const { ranges } = findCompactable(state)
    expect(ranges).toEqual([[1, 1]])
    const result = { text: 'said', compacted: ranges.map(([from, to]) => [from, to]) }
    const summed = { seq: 5, turn: 5, body: body('compaction', { result }), patch: {} }
    expect(isCompactionDue(foldActions([...rows, summed]), 1000)).toBe(false)
  })

  test('by rules drops what is least relevant first and carries the summary before it on', () => {
    const bodies = Array.from({ length: 10 }, (_, n) => [
      plan([{ tool: 'look', args: { n } }]),
      { ...answer('look', 0, { text: `text ${n} ${'word '.repeat(30)}` }), relevance: n === 2 ? 0.9 : 0.1 },
    ]).flat()
    const compactable = findCompactable(stateOf([body('load-session'), ...bodies]))
    expect(compactable.ranges).toEqual([[2, 15]])
    const text = summarizeByRules(
      { ...compactable, previous: { id: 1, text: 'said before', ranges: [] } },
      150,
    )
    expect(text).toMatch(/^said before\n/)
    expect(text).toContain('text 2 word')
    expect(text).not.toContain('text 0 word')
    expect(text).toMatch(/\[\d less relevant ones dropped\]$/)
  })
})
