import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findNextTargets, type VisitTarget } from '../../src/graph/route.ts'
import type { Action, ActionBody } from '../../src/state/runtime-state.ts'
import { action, answer, body, plan } from '../support/actions.ts'

/** One thing after the other as the graph would do it, with what is still to do kept on the side. */
type Step = { body: ActionBody; open: VisitTarget[] }
type Choices = { pick(max: number): number }

const single = (node: string): VisitTarget[] => [{ node, call: null }]

/** What comes once a group of branches is through. */
const group = (
  choices: Choices,
  open: VisitTarget[],
  isSequential: boolean,
  toBody: (target: VisitTarget) => ActionBody,
  after: VisitTarget[],
): Step[] => {
  const steps: Step[] = []
  const left = [...open]
  while (left.length > 0) {
    const [target] = left.splice(isSequential ? 0 : choices.pick(left.length), 1)
    if (!target) break
    const due = isSequential ? left.slice(0, 1) : [...left]
    steps.push({ body: toBody(target), open: left.length > 0 ? due : after })
  }
  return steps
}

/** A random turn: a fan-out of prepare tools, rounds of calls with their reflection, an answer, the end. */
const simulate = (choices: Choices): Step[] => {
  const prepares = ['user-context', 'recall-memory', 'preprocess-files'].slice(0, 1 + choices.pick(3))
  const first: VisitTarget[] = prepares.map((node) => ({ node, call: null }))
  const understands = choices.pick(2) === 1
  const steps: Step[] = [{ body: body('load-session', { next: prepares }), open: first }]
  const afterPrepare = understands ? 'understand' : 'planner'
  const prepare = ({ node }: VisitTarget): ActionBody => body(node, { next: [afterPrepare] })
  steps.push(...group(choices, first, false, prepare, single(afterPrepare)))
  if (understands) steps.push({ body: body('understand', { next: ['planner'] }), open: single('planner') })
  for (let round = choices.pick(4); round > 0; round--) {
    const tools = Array.from({ length: 1 + choices.pick(4) }, () => `tool${choices.pick(3)}`)
    const isSequential = choices.pick(2) === 1
    const calls: VisitTarget[] = tools.map((node, call) => ({ node, call }))
    steps.push({
      body: plan(
        tools.map((tool) => ({ tool })),
        isSequential ? 'sequential' : 'parallel',
      ),
      open: isSequential ? calls.slice(0, 1) : calls,
    })
    // a tool's own data may have the names that a plan uses
    const toBody = ({ node, call }: VisitTarget): ActionBody =>
      answer(node, call ?? 0, { calls: ['+49 30 1234'], block: 'sequential', judged: [] })
    steps.push(...group(choices, calls, isSequential, toBody, single('reflection')))
    steps.push({ body: body('reflection', { next: ['planner'] }), open: single('planner') })
  }
  steps.push({ body: body('planner', { result: { draft: 'x' }, next: ['answer'] }), open: single('answer') })
  steps.push({ body: body('answer', { next: ['end'] }), open: single('end') })
  return steps
}

const turns = fc
  .infiniteStream(fc.nat())
  .map((numbers) => simulate({ pick: (max) => (numbers.next().value ?? 0) % max }))
const actionsOf = (steps: readonly Step[]): Action[] =>
  steps.map((step, at) => ({ id: at + 1, ...step.body }))
const sorted = (targets: readonly VisitTarget[]): string[] =>
  targets.map((target) => JSON.stringify(target)).sort()

describe('route', () => {
  test('an empty turn begins with load-session', () => {
    expect(findNextTargets([], true)).toEqual(single('load-session'))
  })

  test('a run taken over after any action goes on with exactly what has no action yet', () => {
    fc.assert(
      fc.property(turns, (steps) => {
        const actions = actionsOf(steps)
        for (const [at, { open }] of steps.entries())
          expect(sorted(findNextTargets(actions.slice(0, at + 1), true))).toEqual(sorted(open))
      }),
      { numRuns: 300 },
    )
  })

  test('in one process every action is sent for once, whatever order its siblings commit in', () => {
    fc.assert(
      fc.property(turns, (steps) => {
        const actions = actionsOf(steps)
        const sent = actions.flatMap((_, at) => findNextTargets(actions.slice(0, at + 1), false))
        const done = actions.slice(1).map(({ node, result }) => ({
          node,
          call: (result.call as { index: number } | undefined)?.index ?? null,
        }))
        expect(sorted(sent)).toEqual(sorted([...done, { node: 'end', call: null }]))
      }),
      { numRuns: 300 },
    )
  })

  test('a call that is listed twice is two calls', () => {
    const twice = plan([{ tool: 'fetch' }, { tool: 'fetch' }])
    const half = [
      { id: 1, ...twice },
      { id: 2, ...answer('fetch', 1) },
    ]
    expect(findNextTargets(half, true)).toEqual([{ node: 'fetch', call: 0 }])
  })

  test('members of a fan-out that lead to the same node lead there once', () => {
    const actions = [
      action(1, 'load-session', { next: ['a', 'b'] }),
      action(2, 'a', { next: ['planner'] }),
      action(3, 'b', { next: ['planner'] }),
    ]
    expect(findNextTargets(actions, false)).toEqual(single('planner'))
  })
})
