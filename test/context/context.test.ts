import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { computePromptBudget } from '../../src/context/budget.ts'
import { type ActionRow, foldActions } from '../../src/state/fold.ts'
import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { estimateTokens, fitTokens } from '../../src/state/text/tokens.ts'
import { answer, body, plan, stateOf, todo } from '../support/actions.ts'
import { outputText, plannerMessages } from '../support/prompts.ts'

const textOf = (messages: readonly ModelMessage[]): string =>
  messages.map((one) => JSON.stringify(one)).join('\n')
const tokensOf = (messages: readonly ModelMessage[]): number =>
  messages.reduce(
    (sum, one) =>
      sum +
      estimateTokens(one.content) +
      ('tool_calls' in one ? estimateTokens(JSON.stringify(one.tool_calls)) : 0),
    0,
  )

type Step = { size: number; relevance: number; important: boolean }
/** Turns of steps whose results have these sizes, each turn with its talk. */
const session = (turns: readonly (readonly Step[])[], prompt = 'And now?'): RuntimeState => {
  const rows: ActionRow[] = []
  const append = (turn: number, one: ReturnType<typeof body>, patch = {}): void =>
    void rows.push({ seq: rows.length + 1, turn, body: one, patch })
  for (const [at, steps] of turns.entries()) {
    const turn = at + 1
    const isLast = turn === turns.length
    const said = isLast ? prompt : `question ${turn}`
    append(turn, body('load-session', { next: ['planner'] }), {
      prompts: said,
      chat_history: [{ role: 'user', content: said, turn }],
    })
    for (const [n, { size, relevance, important }] of steps.entries()) {
      append(turn, plan([{ tool: 'look', args: { n }, id: `t${turn}c${n}` }]))
      const id = rows.length + 1
      append(turn, {
        ...answer('look', 0, { text: `turn ${turn} step ${n} ${'x '.repeat(size / 2)}` }),
        context: { type: 'text', content: `turn ${turn} step ${n}`, important, usage_type: 'analysis' },
      })
      append(
        turn,
        body('reflection', { result: { judged: [{ id, relevance, important }] }, next: ['planner'] }),
      )
    }
    if (!isLast)
      append(turn, body('end'), { chat_history: [{ role: 'assistant', content: `answer ${turn}`, turn }] })
  }
  return foldActions(rows)
}
const steps = (count: number, size: number, relevance = 0.5): Step[] =>
  Array.from({ length: count }, () => ({ size, relevance, important: false }))

describe('a prompt', () => {
  test('stays within its budget, whatever the state holds', () => {
    const step = fc.record({
      size: fc.nat(20_000),
      relevance: fc.double({ min: 0, max: 1, noNaN: true }),
      important: fc.boolean(),
    })
    fc.assert(
      fc.property(
        fc.array(fc.array(step, { maxLength: 5 }), { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 3000, max: 40_000 }),
        fc.nat(60_000),
        (turns, budget, length) => {
          const state = session(turns, 'word '.repeat(length / 5))
          expect(tokensOf(plannerMessages(state, { budget, canOpen: true }))).toBeLessThanOrEqual(budget)
          expect(estimateTokens(outputText(state, 'draft '.repeat(length / 5), budget))).toBeLessThanOrEqual(
            budget * 1.01,
          )
        },
      ),
      { numRuns: 25 },
    )
  })

  test('a role has its share of the smallest window that may serve it', () => {
    expect(computePromptBudget('planner', { context: 32_000, output: null })).toBe(16_000)
    expect(computePromptBudget('reflection', { context: 32_000, output: null })).toBe(8000)
    expect(computePromptBudget('planner', { context: 8000, output: 100_000 })).toBe(4000)
    expect(computePromptBudget('planner', undefined)).toBe(
      computePromptBudget('planner', { context: null, output: null }),
    )
  })

  test('keeps important and relevant results of this turn in full where others give way to a line', () => {
    const all = steps(12, 3000, 0.2).with(1, { size: 3000, relevance: 0.9, important: false })
    const shown = plannerMessages(session([all]), { budget: 6000, canOpen: true })
    const results = shown.filter(({ role }) => role === 'tool').map(({ content }) => content)
    expect(results.some((content) => content.includes('turn 1 step 1 x'))).toBe(true)
    expect(results.some((content) => /left out.*read_result with action_id/s.test(content))).toBe(true)
    // each call still has its answer
    const calls = shown.flatMap((one) => ('tool_calls' in one ? (one.tool_calls ?? []) : []))
    expect(calls).toHaveLength(results.length)
  })

  test('shows the most important results of earlier turns, and the recalled session beside them', () => {
    const turns = Array.from({ length: 40 }, (_, at) => steps(2, 100, at === 5 ? 0.95 : 0.2))
    const text = textOf(plannerMessages(session([...turns, []]), { budget: 4000, canOpen: true }))
    expect(text).toContain('turn 6 step 0')
    expect(text).toContain('answer 40')
    expect(text).not.toContain('turn 3 step 0\\n</data-')
  })

  test("does not contain reasoning in a vendor's own format", () => {
    const thought = 'SECRET-THOUGHT'
    const decided = plan([{ tool: 'look' }])
    const state = stateOf([
      body('load-session'),
      { ...decided, result: { ...decided.result, reasoning: thought, model: 'm' } },
      answer('look', 0, { text: 'seen' }),
    ])
    expect(textOf(plannerMessages(state, { budget: 9000, canOpen: true }))).not.toContain(thought)
    expect(outputText(state, null, 9000)).not.toContain(thought)
  })

  test('names the plan and the current task last', () => {
    const todos = [todo('a', { status: 'processing', success_criteria: 'a list' })]
    const last = plannerMessages(stateOf([[body('load-session'), { todos }]]), {
      budget: 9000,
      canOpen: false,
    }).at(-1)
    expect(last?.content.replaceAll(/data-\w+/g, 'data')).toBe(
      '# CURRENT PLAN STATUS\n<data agent>\n- [ ] a: do a (processing)\n</data>\n\n' +
        '# YOUR CURRENT TASK\n<data agent>\na: do a\nDone when: a list\n</data>',
    )
  })
})

describe('the beginning of a prompt', () => {
  const sharePrefix = (before: string, after: string): number => {
    let at = 0
    while (at < before.length && before[at] === after[at]) at++
    return at / before.length
  }
  test('is that of the step before, but for the closing plan', () => {
    const shares: number[] = []
    let before = ''
    for (let n = 1; n <= 20; n++) {
      const messages = plannerMessages(session([steps(3, 400), steps(n, 800)]), {
        budget: 64_000,
        canOpen: true,
      })
      const after = textOf(messages)
      if (before) shares.push(sharePrefix(before, after))
      before = after
    }
    expect(Math.min(...shares)).toBe(1)
  })

  /** The last prompt of a turn and the first of the next, which asks for something else. */
  const turnAndNext = (count: number, size: number, budget: number): [string, string] => {
    const turns = Array.from({ length: count }, () => steps(2, size))
    const prompt = (all: Step[][], asked: string) =>
      textOf(plannerMessages(session(all, asked), { budget, canOpen: true }))
    return [prompt(turns, `question ${count}`), prompt([...turns, []], 'Is the copper gate open now?')]
  }
  const shareOf = ([before, after]: [string, string]): number =>
    (sharePrefix(before, after) * before.length) / after.length

  test('of a turn shows the same history as the turn before, whatever the request', () => {
    for (const count of [5, 10, 20]) expect(shareOf(turnAndNext(count, 400, 64_000))).toBeGreaterThan(0.7)
  })

  test('changes once in several turns where a session is longer than a prompt', () => {
    const shares = Array.from({ length: 30 }, (_, at) => shareOf(turnAndNext(31 + at, 800, 16_000)))
    expect(shares.filter((share) => share < 0.4).length).toBeLessThanOrEqual(10)
    expect(shares.toSorted((a, b) => a - b)[15]).toBeGreaterThan(0.5)
  })

  test('is the same for all users: instructions first, with nothing of the run in them', () => {
    const [a, b] = ['one', 'two'].map((prompt) =>
      plannerMessages(session([[]], prompt), { budget: 9000, canOpen: true }),
    )
    expect(a?.[0]).toEqual(b?.[0])
  })
})

test('a shortened text keeps its start and its end, and no half characters', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 2000 }),
      fc.integer({ min: 30, max: 400 }),
      (text, max) => {
        const fitted = fitTokens(text, max)
        expect(fitted.isWellFormed()).toBe(true)
        expect(fitted === text || estimateTokens(fitted) <= max + 5).toBe(true)
      },
    ),
  )
})
