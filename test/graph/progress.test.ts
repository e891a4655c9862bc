import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findReachedCost, findReachedLimit } from '../../src/graph/limits.ts'
import { checkProgress } from '../../src/graph/progress.ts'
import { applyAction } from '../../src/state/fold.ts'
import { type ActionBody, emptyState, type Json } from '../../src/state/runtime-state.ts'
import { answer, body, plan, stateOf } from '../support/actions.ts'

type Round = { args?: Record<string, Json>; text?: string; error?: boolean; gap?: string; retried?: string[] }

/** Rounds of one call each, with what came back and what reflection made of it. */
const rounds = (...all: Round[]): ActionBody[] => [
  body('load-session', { next: ['planner'] }),
  ...all.flatMap(({ args = {}, text = 'same', error = false, gap = '', retried = [] }) => [
    plan([{ tool: 'fetch', args }]),
    answer('fetch', 0, { text, ...(error && { is_error: true }) }),
    body('reflection', {
      next: ['planner'],
      result: { knowledge_gap: gap, ...(retried.length > 0 && { retried }) },
    }),
  ]),
]
const verdict = (...all: Round[]) => checkProgress(stateOf(rounds(...all)))

describe('progress', () => {
  test('the same call with the same result twice asks for a new plan, a third time stops', () => {
    expect(verdict({}).verdict).toBe('ok')
    expect(verdict({}, { args: { page: 2 } }, {})).toEqual({
      verdict: 'replan',
      reason: 'fetch was called with the same arguments and gave the same result twice',
    })
    expect(verdict({}, {}, {})).toEqual({
      verdict: 'stop',
      reason: 'fetch was called with the same arguments and gave the same result three times',
    })
  })

  test('other arguments or another result are progress', () => {
    expect(verdict({}, { args: { page: 2 } }, { args: { page: 3 } }).verdict).toBe('ok')
    expect(verdict({ text: 'a' }, { text: 'b' }, { text: 'c' }).verdict).toBe('ok')
  })

  test('results and long arguments of calls are compared whole', () => {
    const brought = (...results: Record<string, Json>[]) =>
      checkProgress(
        stateOf(
          results.flatMap((result) => [plan([{ tool: 'fetch', args: {} }]), answer('fetch', 0, result)]),
        ),
      ).verdict
    expect(brought({ rows: [{ a: 1, b: null }] }, { rows: [{ b: null, a: 1 }] })).toBe('replan')
    expect(brought({ rows: [{ a: 1, b: null }] }, { rows: [{ a: 1, b: 0 }] })).toBe('ok')
    expect(brought({ rows: [] }, { rows: [], more: 1 })).toBe('ok')
    expect(brought({ rows: [] }, { lines: [] })).toBe('ok')
    const page = 'x'.repeat(5000)
    expect(verdict({ args: { page } }, { args: { page } }).verdict).toBe('replan')
    expect(verdict({ args: { page } }, { args: { page: `${page}y` } }).verdict).toBe('ok')
  })

  test('the same gap after the same calls counts, whatever its case and spaces and the order of arguments', () => {
    const [one = {}, two = {}, three = {}]: Round[] = [
      { gap: 'No price', text: 'a', args: { page: 1, of: 'x' } },
      { gap: 'no  PRICE', text: 'b', args: { of: 'x', page: 1 } },
      { gap: ' no price ', text: 'c', args: { page: 1, of: 'x' } },
    ]
    expect(verdict(one, two)).toEqual({
      verdict: 'replan',
      reason: 'the same gap was found after the same calls twice',
    })
    expect(verdict(one, two, three).verdict).toBe('stop')
  })

  test('a search that goes on after other calls leaves the same gap is not ended', () => {
    const pages = [1, 2, 3, 4].map((page) => ({ gap: 'no price', text: 'no', args: { page } }))
    expect(verdict(...pages)).toEqual({ verdict: 'ok', reason: '' })
    const toStep = (tools: string[], at: number) => [
      plan(tools.map((tool) => ({ tool }))),
      ...tools.map((tool, index) => answer(tool, index, { text: `page ${at}` })),
      body('reflection', { next: ['planner'], result: { knowledge_gap: 'no price' } }),
    ]
    const verdictOf = (...blocks: string[][]) => checkProgress(stateOf(blocks.flatMap(toStep))).verdict
    expect(verdictOf(['fetch'], ['fetch', 'look'], ['look'])).toBe('ok')
    expect(verdictOf(['fetch', 'look'], ['look', 'fetch'], ['fetch', 'look', 'look'])).toBe('stop')
  })

  test('retries that a todo grants do not count, neither as calls nor as gaps', () => {
    const failed = { error: true, gap: 'fetch: no answer' }
    const granted = { ...failed, retried: ['t1'] }
    expect(verdict(granted, granted, granted, failed).verdict).toBe('ok')
    expect(verdict(granted, granted, granted, failed, failed).verdict).toBe('replan')
    expect(verdict(granted, granted, granted, failed, failed, failed).verdict).toBe('stop')
  })

  test('a grant for what failed does not excuse what came back the same without error', () => {
    const granted = { retried: ['t1'] }
    expect(verdict(granted, granted, granted).verdict).toBe('stop')
  })

  test('the same call several times in one block is one step', () => {
    const block = [
      plan([{ tool: 'fetch' }, { tool: 'fetch' }, { tool: 'fetch' }]),
      ...[0, 1, 2].map((index) => answer('fetch', index, { text: 'same' })),
    ]
    expect(checkProgress(stateOf([body('load-session'), ...block])).verdict).toBe('ok')
    expect(checkProgress(stateOf([body('load-session'), ...block, ...block])).verdict).toBe('replan')
  })

  test('asked after every action says the same as asked for the first time, also where the window moves on', () => {
    const round = fc.record({
      args: fc.record({ n: fc.nat(12) }),
      error: fc.boolean(),
      gap: fc.constantFrom('', '', 'a', 'b'),
      retried: fc.constantFrom<string[][]>([], [], ['t1']),
    })
    const verdicts = new Set<string>()
    fc.assert(
      fc.property(fc.array(round, { minLength: 215, maxLength: 230 }), (all) => {
        // nothing comes back for so long that the first part of the turn is out of sight
        const quiet = all.map((one, n) => (n < 205 && n > 3 ? { args: { n: n + 100 } } : one))
        let state = emptyState
        for (const [at, one] of rounds(...quiet).entries()) {
          state = applyAction(state, {
            seq: at + 1,
            turn: 1,
            body: one,
            patch: at === 0 ? { prompts: 'x' } : {},
          })
          const checked = checkProgress(state)
          if (at % 50 === 0 || at > 630) expect(checked).toEqual(checkProgress(structuredClone(state)))
          verdicts.add(checked.verdict)
        }
      }),
      { numRuns: 2, endOnFailure: true, seed: 1 },
    )
    expect([...verdicts].sort()).toEqual(['ok', 'replan', 'stop'])
  })
})

describe('limits', () => {
  const used = (total_tokens: number) =>
    stateOf([
      body('load-session', { usage: { prompt_tokens: total_tokens, completion_tokens: 0, total_tokens } }),
    ])

  test('a step is an action, end included: what is planned and the end must still fit', () => {
    const state = stateOf(rounds({}))
    expect(findReachedLimit(state, { max_steps: 6 }, 1)).toBeNull()
    expect(findReachedLimit(state, { max_steps: 6 }, 2)).toEqual({ status: 'completed', reason: 'steps' })
    expect(findReachedLimit(state, { max_steps: 5 }, 1)).toEqual({ status: 'completed', reason: 'steps' })
  })

  test('tokens end the run once that many are used', () => {
    expect(findReachedLimit(used(99), { max_tokens: 100 }, 1)).toBeNull()
    expect(findReachedLimit(used(100), { max_tokens: 100 }, 1)).toEqual({
      status: 'completed',
      reason: 'tokens',
    })
  })

  test('cost ends the run once it is reached, where costs are known', async () => {
    const cost = async () => 0.5
    expect(await findReachedCost({ cost }, { max_cost: 0.500001 })).toBeNull()
    expect(await findReachedCost({ cost }, { max_cost: 0.5 })).toEqual({
      status: 'completed',
      reason: 'cost',
    })
    expect(await findReachedCost({ cost }, {})).toBeNull()
    expect(await findReachedCost({}, { max_cost: 0.5 })).toBeNull()
  })

  test('a third repetition ends the run', () => {
    expect(findReachedLimit(stateOf(rounds({}, {})), {}, 1)).toBeNull()
    expect(findReachedLimit(stateOf(rounds({}, {}, {})), {}, 1)).toEqual({
      status: 'completed',
      reason: 'no_progress',
    })
  })
})
