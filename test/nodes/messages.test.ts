import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readLargeTexts } from '../../src/context/result-text.ts'
import { listRounds } from '../../src/context/rounds.ts'
import { plannerPrompt } from '../../src/nodes/planner/messages.ts'
import { applyAction } from '../../src/state/fold.ts'
import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import { type ActionBody, emptyState, type RuntimeState } from '../../src/state/runtime-state.ts'
import { turnActions } from '../../src/state/turn.ts'
import { answer, body, plan, stateOf, todo } from '../support/actions.ts'
import { plannerMessages } from '../support/prompts.ts'

const options = { budget: 64_000, canOpen: true }
const isClosing = (message: ModelMessage | undefined): boolean =>
  message?.role === 'user' && /^# (CURRENT PLAN STATUS|Reflection\nNo progress)/.test(message.content)
/** What stays from step to step: all but the closing plan. */
const lasting = (state: RuntimeState): ModelMessage[] => {
  const messages = plannerMessages(state, options)
  return isClosing(messages.at(-1)) ? messages.slice(0, -1) : messages
}

type Round = { tools: number; gap: boolean; todos: number }
const rounds = fc.array(
  fc.record({
    tools: fc.integer({ min: 1, max: 3 }),
    gap: fc.boolean(),
    todos: fc.integer({ min: 0, max: 2 }),
  }),
  { maxLength: 6 },
)
const toBodies = ({ tools, gap, todos }: Round, round: number): (ActionBody | [ActionBody, object])[] => [
  [
    plan(Array.from({ length: tools }, (_, n) => ({ tool: `t${n}`, id: `r${round}c${n}` }))),
    { todos: Array.from({ length: todos }, (_, n) => todo(`todo${n}`, { retry: round })) },
  ],
  ...Array.from({ length: tools }, (_, n) => answer(`t${n}`, n, { text: `result ${round} ${n}` })),
  body('reflection', {
    next: ['planner'],
    result: { is_sufficient: !gap, knowledge_gap: gap ? `gap ${round}` : '', follow_up_queries: ['why'] },
  }),
]

describe("the planner's messages", () => {
  test('give back what was thought before calls, with the model that thought it', () => {
    const planned = plan([{ tool: 't', id: 'c1' }])
    const thought = { ...planned, result: { ...planned.result, reasoning: 'why', reasoned_by: 'deep' } }
    const messages = plannerMessages(stateOf([body('load-session', { next: ['planner'] }), thought]), options)
    expect(messages.find(({ role }) => role === 'assistant')).toMatchObject({
      reasoning: { text: 'why', by: 'deep' },
      tool_calls: [{ id: 'c1' }],
    })
    const without = plannerMessages(stateOf([body('load-session', { next: ['planner'] }), planned]), options)
    expect(without.find(({ role }) => role === 'assistant')).not.toHaveProperty('reasoning')
  })

  test('of one step are the beginning of those of the next, so that prompt caches hold', () => {
    fc.assert(
      fc.property(rounds, (all) => {
        const opening = [body('load-session', { next: ['planner'] })]
        let before = lasting(stateOf(opening))
        for (let n = 1; n <= all.length; n++) {
          const after = lasting(stateOf([...opening, ...all.slice(0, n).flatMap(toBodies)]))
          expect(after.slice(0, before.length)).toEqual(before)
          expect(after.length).toBeGreaterThan(before.length)
          before = after
        }
      }),
      { numRuns: 50 },
    )
  })

  test('keep the plans of earlier steps as they were said, and let them go first where there is no room', () => {
    const steps = Array.from({ length: 12 }, (_, n) => n)
    const bodies: (ActionBody | [ActionBody, object])[] = [body('load-session', { next: ['planner'] })]
    const promptOf = (budget: number) => plannerPrompt(stateOf(bodies), { budget, canOpen: true })
    const small = 9000
    let before: ModelMessage[] = []
    for (const n of steps) {
      const { messages, closing } = promptOf(64_000)
      expect(messages.slice(0, before.length)).toEqual(before)
      before = messages
      const planned = plan([{ tool: 'look', id: `c${n}` }])
      const tasks = [todo('a', { task: `step ${n} ${'of the plan '.repeat(100)}` })]
      bodies.push([{ ...planned, result: { ...planned.result, closing } }, { todos: tasks }])
      bodies.push(answer('look', 0, { text: `found ${n} ${'x '.repeat(400)}` }))
    }
    expect(before.filter(isClosing)).toHaveLength(steps.length - 1)
    const { messages } = promptOf(small)
    expect(messages.filter(isClosing).length).toBeLessThan(steps.length / 2)
    expect(messages.at(-1)?.content).toContain('step 11')
    expect(messages.filter(({ role, content }) => role === 'tool' && /found/.test(content))).toHaveLength(12)
  })

  test('made step by step are those made at once, also where there is no room for all', () => {
    fc.assert(
      fc.property(rounds, fc.constantFrom(1000, 64_000), (all, budget) => {
        let state = emptyState
        const bodies = [body('load-session', { next: ['planner'] }), ...all.flatMap(toBodies)]
        for (const [at, entry] of bodies.entries()) {
          const [one, patch] = Array.isArray(entry) ? entry : [entry, {}]
          const result = one.result.call ? { ...one.result, text: `${at} ${'x'.repeat(400)}` } : one.result
          state = applyAction(state, {
            seq: at + 1,
            turn: 1,
            body: { ...one, result },
            patch: at === 0 ? { prompts: 'x' } : patch,
          })
          expect(plannerMessages(state, { budget, canOpen: true })).toEqual(
            plannerMessages(structuredClone(state), { budget, canOpen: true }),
          )
        }
      }),
      { numRuns: 30 },
    )
  })

  test('answer every call with its own result, also where siblings came back in another order', () => {
    const state = stateOf([
      body('load-session'),
      plan([
        { tool: 'look', id: 'a' },
        { tool: 'look', id: 'b' },
      ]),
      answer('look', 1, { text: 'second' }),
      answer('look', 0, { text: 'first' }),
    ])
    expect(plannerMessages(state, options).filter(({ role }) => role === 'tool')).toEqual([
      { role: 'tool', tool_call_id: 'a', content: expect.stringMatching(/^<data-\w+ .*>\nfirst\n</) },
      { role: 'tool', tool_call_id: 'b', content: expect.stringMatching(/^<data-\w+ .*>\nsecond\n</) },
    ])
  })

  test('show a gap and its follow-ups, and nothing where the results will do', () => {
    const judged = (result: object) =>
      plannerMessages(
        stateOf([
          body('load-session'),
          plan([{ tool: 'look' }]),
          answer('look', 0, { text: 'seen' }),
          body('reflection', { result: result as never }),
        ]),
        options,
      ).at(-1)
    expect(
      judged({ is_sufficient: false, knowledge_gap: 'no price', follow_up_queries: ['price?'] })?.content,
    ).toMatch(/^# Reflection\nStill missing:\n<(data-\w+) agent>\nno price\n- price\?\n<\/\1>$/)
    expect(judged({ is_sufficient: true, knowledge_gap: 'none really' })?.content).toMatch(/^<data-/)
  })

  test('close with the plan and the task that is next', () => {
    const todos = [todo('a', { status: 'completed' }), todo('b', { dependencies: ['a'] })]
    const closing = plannerMessages(stateOf([[body('load-session'), { todos }]]), options).at(-1)?.content
    expect(closing).toMatch(
      /# CURRENT PLAN STATUS\n<data-\w+ agent>\n- \[x\] a: do a \(completed\)\n- \[ \] b: do b \(pending after a\)/,
    )
    expect(closing).toMatch(/# YOUR CURRENT TASK\n<data-\w+ agent>\nb: do b\n/)
  })

  test('show a large result by its start, with what it is and how to read the rest', () => {
    const large = {
      ...answer('look', 0, { blob: 'x', bytes: 200_000, head: 'the start' }),
      summary: 'A page',
    }
    const shown = (canOpen: boolean) =>
      plannerMessages(stateOf([body('load-session'), plan([{ tool: 'look' }]), large]), {
        ...options,
        canOpen,
      })
        .filter(({ role }) => role === 'tool')
        .map(({ content }) => content)
    expect(shown(true)[0]).toContain(
      'the start\n[cut: A page; 200000 bytes in all; read_result with action_id 3 reads the rest]',
    )
    expect(shown(false)[0]).toContain('[cut: A page; 200000 bytes in all; ask for a smaller part]')
  })

  test('show of a large result in a blob as much as their budget allows, and where to go on', async () => {
    const text = Array.from({ length: 2000 }, (_, at) => `${at}: of a page of 2,000 lines`).join('\n')
    const large = {
      ...answer('look', 0, { blob: 'x', bytes: 70_000, head: text.slice(0, 2000) }),
      summary: 'A page',
    }
    const state = stateOf([body('load-session'), plan([{ tool: 'look' }]), large])
    let reads = 0
    const blobs = {
      read: async () => {
        reads += 1
        return Buffer.from(JSON.stringify({ text }))
      },
    }
    const shown = async (budget: number) => {
      const largeTexts = await readLargeTexts(listRounds(turnActions(state)), blobs)
      const { messages } = plannerPrompt(state, { budget, canOpen: true, largeTexts })
      return String(messages.find(({ role }) => role === 'tool')?.content)
    }
    expect(await shown(500_000)).toContain(text)
    const part = await shown(20_000)
    const [, from = ''] = /read_result with action_id 3 and from (\d+) reads the rest\]/.exec(part) ?? []
    expect(part).toContain(text.slice(0, Number(from)))
    expect(Number(from)).toBeGreaterThan(11_000)
    expect(part).not.toContain(text.slice(0, Number(from) + 1))
    expect(reads).toBe(1)
  })
})
