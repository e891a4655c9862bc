// backends: both

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { BusinessApi } from '../../../src/app/api.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { Hints } from '../../../src/infra/queue/hints.ts'
import type { RunEvent } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { codeOf, until } from '../../support/runs.ts'
import { deadline, eventsOf, type TestRuntime } from '../../support/test-runtime.ts'
import { isSaidByServers } from '../../support/tier.ts'

let model: FakeModel
let runtime: TestRuntime
let dropHints = false
let reads = 0

const counting = (opened: Database): Database => ({
  ...opened,
  asBusiness(business, work, scope) {
    reads++
    return opened.asBusiness(business, work, scope)
  },
})

/** Hints that get lost when the test says so. */
const lossy = (hints: Hints): Hints => ({
  ...hints,
  publish(channel, message) {
    if (!dropHints) hints.publish(channel, message)
  },
})

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  wrap: { hints: lossy, database: counting },
}))
test.beforeAll(({ model: m, runtime: r }) => {
  ;[model, runtime] = [m, r]
})

const api = (): BusinessApi => runtime.of('default')
const script = (...planner: object[]) => {
  model.reset()
  model.script({ planner } as never)
}
const calculate = (expression: string) => ({ tool_calls: [{ name: 'calculate', arguments: { expression } }] })
/** The text is the answer; the task is named beside it. */
const finish = (text: string) => ({
  text,
  tool_calls: [
    { name: 'finish', arguments: { todos: [{ id: 'a', status: 'completed', reason: 'it was added' }] } },
  ],
})
const todos = (status: 'new' | 'later') => ({
  tool_calls: [
    { name: 'update_todos', arguments: { todos: [{ id: 'a', task: `add ${status}` }] } },
    { name: 'calculate', arguments: { expression: '1+1' } },
  ],
})
const idsOf = (events: readonly RunEvent[]): number[] =>
  events.flatMap((event) => (event.event === 'action' ? [event.id] : []))
const upTo = (n: number, from = 1): number[] => Array.from({ length: n - from + 1 }, (_, at) => from + at)

/** Takes events until `enough`, then disconnects. */
const take = async (
  source: { run_id: string } | { session_id: string },
  after: number,
  enough: (events: RunEvent[]) => boolean,
): Promise<RunEvent[]> => {
  const events: RunEvent[] = []
  for await (const event of api().events(source, after, deadline())) {
    events.push(event)
    if (enough(events)) break
  }
  return events
}
const done = (events: readonly RunEvent[]): boolean => events.at(-1)?.event === 'done'

/** Follows a run to its end over many connections, each cut after as many events as `cuts` says in turn. */
const followInPieces = async (runId: string, cuts: readonly number[]): Promise<number[]> => {
  const ids: number[] = []
  for (let at = 0; ; at++) {
    const events = await take(
      { run_id: runId },
      ids.at(-1) ?? 0,
      (all) => done(all) || all.length >= (cuts[at] ?? 1000),
    )
    ids.push(...idsOf(events))
    if (done(events)) return ids
  }
}

describe('the stream of a run that has ended', () => {
  test('resumed after any id gives exactly the rest, and ends with done', async () => {
    script(todos('new'), calculate('2+2'), { text: 'Four.' })
    const run = await runtime.complete({ prompt: 'x' })
    const all = await eventsOf(api(), run.id)
    const last = Math.max(...idsOf(all))
    expect(last).toBeGreaterThan(8)
    for (let after = 0; after <= last + 2; after++) {
      const events = await eventsOf(api(), run.id, after)
      expect(idsOf(events)).toEqual(upTo(last, after + 1))
      expect(events.at(-1)).toEqual({ event: 'done', data: run })
    }
  })

  test('shows the states as they are now first, with an id that loses nothing, and each only once', async () => {
    script(todos('new'), calculate('2+2'), finish('Four.'))
    const run = await runtime.complete({ prompt: 'x' })
    for (const after of [0, 3]) {
      const events = await eventsOf(api(), run.id, after)
      expect(events[0]).toEqual({
        event: 'status',
        id: after,
        data: { run_id: run.id, turn: 1, status: 'completed' },
      })
      expect(events[1]).toMatchObject({
        event: 'todos',
        id: after,
        data: { todos: [{ id: 'a', status: 'completed' }] },
      })
      expect(events.filter(({ event }) => event !== 'action').map(({ event }) => event)).toEqual([
        'status',
        'todos',
        'done',
      ])
    }
  })

  test('of a later turn does not show what was before it', async () => {
    const session_id = unique('s')
    script({ text: 'One.' })
    const first = await runtime.complete({ prompt: 'one', session_id })
    script(todos('later'), { text: 'Two.' })
    const second = await runtime.complete({ prompt: 'two', session_id })
    const before = Math.max(...idsOf(await eventsOf(api(), first.id)))
    const ids = idsOf(await eventsOf(api(), second.id))
    expect(ids[0]).toBe(before + 1)
    expect(idsOf(await eventsOf(api(), first.id))).toEqual(upTo(before))
  })
})

describe('a run that is followed while it works', () => {
  test.skipIf(isSaidByServers)('sends each action once over connections that break anywhere', async () => {
    const cutsOf = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(cutsOf, async (cuts) => {
        script(todos('new'), calculate('2+2'), calculate('3+3'), { text: 'Six.' })
        const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
        const followers = await Promise.all([
          followInPieces(run.id, cuts),
          followInPieces(run.id, []),
          followInPieces(run.id, cuts.toReversed()),
        ])
        const all = idsOf(await eventsOf(api(), run.id))
        expect(all).toEqual(upTo(all.length))
        for (const ids of followers) expect(ids).toEqual(all)
      }),
      { numRuns: 6 },
    )
  })

  test('shows its todos as they change, and its tokens as they come', async () => {
    script(todos('new'), finish('A rather long answer that comes in several pieces.'))
    const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
    const events = await eventsOf(api(), run.id)
    const shown = events.flatMap((event) => (event.event === 'todos' ? [event.data.todos[0]?.status] : []))
    expect(shown.at(-1)).toBe('completed')
    const ids = events.flatMap((event) => ('id' in event ? [event.id] : []))
    expect(ids).toEqual(ids.toSorted((a, b) => a - b))
    const statuses = events.flatMap((event) => (event.event === 'status' ? [event.data.status] : []))
    expect(statuses.at(-1)).toBe('completed')
    expect(new Set(statuses).size).toBe(statuses.length)
  })

  test('costs no event when every hint is lost', async () => {
    dropHints = true
    try {
      script({ hold: true, text: 'Hello.' })
      const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
      const followed = eventsOf(api(), run.id)
      const waited = api().wait(run.id, deadline())
      await until(
        'the model call',
        () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
      )
      model.release()
      await until('the end', async () => (await api().run(run.id))?.ended_at)
      const [events, view] = await Promise.all([followed, waited])
      expect(idsOf(events)).toEqual(upTo(5))
      expect(view.status).toBe('completed')
    } finally {
      dropHints = false
    }
  })

  test('also when many turns are queued behind it and every hint is lost', async () => {
    dropHints = true
    try {
      const session_id = unique('s')
      script({ hold: true, text: 'Hello.' })
      const runs = await Promise.all(
        upTo(12).map((at) => api().submit({ prompt: `${at}`, user_id: 'u1', session_id })),
      )
      const first = runs.find(({ run }) => run.turn === 1)?.run.id ?? ''
      const waited = api().wait(first, deadline())
      await until(
        'the model call',
        () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
      )
      model.release()
      expect((await waited).status).toBe('completed')
      await api().deleteSession(session_id)
      await until('the next turn to be gone', () => model.open() === 0)
    } finally {
      dropHints = false
    }
  })
})

describe('the stream of a session', () => {
  test('goes on over its turns, for two followers alike, from wherever they come', async () => {
    const session_id = unique('s')
    script({ text: 'One.' })
    const first = await runtime.complete({ prompt: 'one', session_id })
    const ended = (events: RunEvent[]): boolean =>
      events.some(({ event, data }) => event === 'status' && data.turn === 2 && data.status === 'completed')
    const followers = [take({ session_id }, 0, ended), take({ session_id }, 4, ended)]
    script({ text: 'Two.' })
    const second = await runtime.complete({ prompt: 'two', session_id })
    const [all = [], rest = []] = await Promise.all(followers)
    expect(idsOf(all)).toEqual(upTo(10))
    expect(idsOf(rest)).toEqual(upTo(10, 5))
    const runs = all.flatMap((event) => (event.event === 'status' ? [event.data.run_id] : []))
    expect([...new Set(runs)]).toEqual([first.id, second.id])
  })

  test('of another business, or of one that is not there, is not found', async () => {
    script({ text: 'One.' })
    const run = await runtime.complete({ prompt: 'one' })
    const other = runtime.of(unique('b'))
    const open = (events: AsyncIterable<RunEvent>) => codeOf(events[Symbol.asyncIterator]().next())
    expect(await open(other.events({ session_id: run.session_id }, 0, deadline()))).toBe('not_found')
    expect(await open(other.events({ run_id: run.id }, 0, deadline()))).toBe('not_found')
    expect(await open(api().events({ session_id: 'nowhere' }, 0, deadline()))).toBe('not_found')
  })
})

describe('leaving', () => {
  test('is possible at any time, and stops the wait for more', async () => {
    script({ hold: true, text: 'late' })
    const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
    const leaving = new AbortController()
    const events: RunEvent[] = []
    const following = (async () => {
      for await (const event of api().events({ run_id: run.id }, 0, leaving.signal)) events.push(event)
    })()
    await until('the first actions', () => idsOf(events).length >= 2)
    leaving.abort()
    await following
    await expect(api().wait(run.id, AbortSignal.abort(new Error('left')))).rejects.toThrow('left')
    await api().cancel(run.id, undefined)
    await api().wait(run.id, deadline())
  })

  test('a run or session that is deleted ends the streams that follow it, with an error for waiting callers', async () => {
    script({ hold: true, text: 'late' })
    const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
    await until(
      'the model call',
      () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
    )
    let begun = 0
    const never = (events: RunEvent[]): boolean => {
      if (events.length === 1) begun++
      return false
    }
    const followed = [{ run_id: run.id }, { session_id: run.session_id }].map((of) => take(of, 0, never))
    const waited = codeOf(api().wait(run.id, deadline()))
    await until('both to follow', () => begun === 2)
    await api().deleteSession(run.session_id)
    for (const events of await Promise.all(followed)) expect(done(events)).toBe(false)
    expect(await waited).toBe('not_found')
    await until('the model call to be gone', () => model.open() === 0)
  })
})

describe('500 followers of one session', () => {
  test('all see the end, and do not ask the database for every action', async () => {
    script({ hold: true, text: 'Hello.' })
    const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
    await until(
      'the model call',
      () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
    )
    reads = 0
    const waiting = Promise.all(upTo(500).map(() => api().wait(run.id, deadline())))
    await until('all to wait', () => reads >= 2)
    model.release()
    const views = await waiting
    expect(new Set(views.map(({ status }) => status))).toEqual(new Set(['completed']))
    // those who come together and those who are woken together share a look; one a second is for lost hints
    expect(reads).toBeLessThanOrEqual(100)
  })
})
