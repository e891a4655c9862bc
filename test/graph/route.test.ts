import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findNextTargets, type VisitTarget } from '../../src/graph/route.ts'
import { foldActions } from '../../src/state/fold.ts'
import type { Action, ActionBody } from '../../src/state/runtime-state.ts'
import { action, answer, body, plan } from '../support/actions.ts'

/** One thing after the other as the graph would do it, with what is still to do kept on the side. */
type Step = { body: ActionBody; open: VisitTarget[] }
type Choices = { pick(max: number): number }

const single = (node: string): VisitTarget[] => [{ node, call: null }]

/** A branch as a random plan has it: the steps it still has to go, and whether it fails at its last one. */
type Work = { target: VisitTarget; lane: number; steps: string[]; fails: boolean }

/** What comes once the lanes of a fan-out are through: any lane goes on next, each in its order, until a failure stops all. */
const group = (
  choices: Choices,
  works: readonly Work[],
  stops: boolean,
  toBody: (work: Work, step: string | undefined) => ActionBody,
  after: VisitTarget[],
): Step[] => {
  const steps: Step[] = []
  const lanes = [...new Set(works.map(({ lane }) => lane))].map((lane) =>
    works.filter((one) => one.lane === lane),
  )
  for (;;) {
    const open = lanes.filter((lane) => lane.length > 0)
    const [work, ...rest] = open[choices.pick(open.length)] ?? []
    if (!work) return steps
    const [step, ...later] = work.steps
    const lane = lanes.findIndex(([first]) => first === work)
    const next = { ...work, target: { ...work.target, node: step ?? '' }, steps: later }
    lanes[lane] = step === undefined ? rest : [next, ...rest]
    if (stops && work.fails && step === undefined) lanes.length = 0
    const due = lanes.flatMap(([first]) => (first ? [first.target] : []))
    steps.push({ body: toBody(work, step), open: due.length > 0 ? due : after })
  }
}

/** A random turn: a fan-out of prepare tools, rounds of calls with their reflection, an answer, the end. */
const simulate = (choices: Choices): Step[] => {
  const prepares = ['user-context', 'recall-memory', 'preprocess-files'].slice(0, 1 + choices.pick(3))
  const first: VisitTarget[] = prepares.map((node) => ({ node, call: null }))
  const understands = choices.pick(2) === 1
  const steps: Step[] = [{ body: body('load-session', { next: prepares }), open: first }]
  const afterPrepare = understands ? 'understand' : 'planner'
  const alone = first.map((target, lane) => ({ target, lane, steps: [], fails: false }))
  const prepare = ({ target }: Work): ActionBody => body(target.node, { next: [afterPrepare] })
  steps.push(...group(choices, alone, false, prepare, single(afterPrepare)))
  if (understands) steps.push({ body: body('understand', { next: ['planner'] }), open: single('planner') })
  for (let round = choices.pick(4); round > 0; round--) {
    const isSequential = choices.pick(2) === 1
    const stops = choices.pick(2) === 1
    const length = 1 + choices.pick(5)
    const reads = isSequential && !stops ? choices.pick(length + 1) : 0
    const sideBySide = isSequential ? reads : length
    const calls = Array.from({ length }, () => ({
      tool: `tool${choices.pick(3)}`,
      ...(choices.pick(2) === 1 && { exclusive: `resource${choices.pick(2)}` }),
    }))
    const works = calls.map(({ tool, exclusive }, call) => ({
      target: { node: tool, call },
      lane:
        call >= sideBySide
          ? -1
          : calls.findIndex((one, at) => (exclusive ? one.exclusive === exclusive : at === call)),
      steps: Array.from({ length: choices.pick(4) === 1 ? 1 + choices.pick(2) : 0 }, (_, at) => `step${at}`),
      fails: choices.pick(3) === 1,
    }))
    const [first, ordered] = [works.slice(0, sideBySide), works.slice(sideBySide)]
    const fronts = first.filter(({ lane }, at) => first.findIndex((one) => one.lane === lane) === at)
    const nextOrdered = ordered.slice(0, 1).map(({ target }) => target)
    // an action of an earlier version says nothing of failures and reads, and no call of it names a resource
    const planned = plan(
      calls,
      isSequential ? 'sequential' : 'parallel',
      stops ? 'stop' : (['go_on', undefined] as const)[choices.pick(2)],
    )
    steps.push({
      body: reads > 0 ? { ...planned, result: { ...planned.result, leading_reads: reads } } : planned,
      open: fronts.length > 0 ? fronts.map(({ target }) => target) : nextOrdered,
    })
    // a tool's own data may have the names that a plan uses
    const data = { calls: ['+49 30 1234'], block: 'sequential', on_failure: 'stop', judged: [] }
    const toBody = ({ target, fails }: Work, step: string | undefined): ActionBody => {
      const answered = answer(target.node, target.call ?? 0, {
        ...data,
        ...(fails && step === undefined && { is_error: true }),
      })
      if (step === undefined) return answered
      const call = { ...(answered.result.call as object), open: true }
      return { ...answered, result: { ...answered.result, call }, next: [step] }
    }
    const reflection = single('reflection')
    steps.push(...group(choices, first, false, toBody, ordered.length > 0 ? nextOrdered : reflection))
    steps.push(...group(choices, ordered, isSequential && stops, toBody, reflection))
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
      { numRuns: 500 },
    )
  })

  test('what is next is the same by the actions as they are, and as they come out of the log', () => {
    fc.assert(
      fc.property(turns, (steps) => {
        const rows = steps.map((step, at) => ({
          seq: at + 1,
          turn: 1,
          body: step.body,
          patch: at === 0 ? { prompts: 'Go' } : {},
        }))
        for (let at = 1; at <= rows.length; at++) {
          const read = foldActions(JSON.parse(JSON.stringify(rows.slice(0, at)))).action_history[0] ?? []
          for (const entering of [true, false])
            expect(findNextTargets(read, entering)).toEqual(
              findNextTargets(actionsOf(steps).slice(0, at), entering),
            )
        }
      }),
      { numRuns: 100 },
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
      { numRuns: 500 },
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
