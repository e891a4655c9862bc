import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Todo, todoSchema } from '../../src/state/runtime-state.ts'
import {
  completeTodo,
  computeBackOffMs,
  failTodo,
  findWaitEnd,
  listBlockedTodos,
  listReadyTodos,
  startTodo,
} from '../../src/state/todos.ts'
import { failure, find, later, now, planned, replaced, task, todoListsAfterWork } from '../support/todos.ts'

describe('readyTodos', () => {
  test('orders by priority, then critical path, then the list', () => {
    const todos = planned([
      task('late', [], { priority: 1 }),
      task('first', [], { priority: 8 }),
      task('short'),
      task('long'),
      task('after long', ['long'], { priority: 100 }),
      task('short too'),
    ])
    expect(listReadyTodos(todos, now).map((todo) => todo.id)).toEqual([
      'first',
      'long',
      'short',
      'short too',
      'late',
    ])
  })

  test('gives pending todos whose dependencies are completed and whose time has come, and all of them', () => {
    fc.assert(
      fc.property(todoListsAfterWork, fc.integer({ min: 0, max: 2000 }), (todos, ms) => {
        const at = later(ms)
        const expected = todos.filter(
          (todo) =>
            todo.status === 'pending' &&
            todo.dependencies.every((id) => find(todos, id).status === 'completed') &&
            (todo.retry_after === null || new Date(todo.retry_after) <= at),
        )
        expect(new Set(listReadyTodos(todos, at))).toEqual(new Set(expected))
      }),
    )
  })
})

describe('the life of a todo', () => {
  const fresh = (): Todo => find(planned([task('a')]), 'a')

  test('is started and completed, and the first completion remains', () => {
    const done = completeTodo(startTodo(fresh()), {
      now,
      tool_used: 'calculate',
      execution_time: 2.34,
      output: '36',
    })
    expect(done.completion_details).toEqual({
      completed_at: '2025-01-01T12:00:00.000Z',
      tool_used: 'calculate',
      execution_time: 2.34,
      output: '36',
    })
    expect(startTodo(done)).toBe(done)
    expect(failTodo(done, failure)).toBe(done)
    expect(completeTodo(done, { now, tool_used: 'x', execution_time: 1, output: 'other' })).toBe(done)
  })

  test('is tried max_retry times more with a doubled wait, then failed', () => {
    let todo = fresh()
    const waits: (number | null)[] = []
    while (todo.status !== 'failed') {
      todo = failTodo(startTodo(todo), failure)
      waits.push(todo.retry_after === null ? null : Date.parse(todo.retry_after) - now.getTime())
    }
    expect(waits).toEqual([1000, 2000, 4000, null])
    expect(todo.error_history.map(({ attempt, retry_count }) => [attempt, retry_count])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 4],
    ])
    expect(failTodo(todo, failure)).toBe(todo)
    expect([1, 6, 7, 5000].map(computeBackOffMs)).toEqual([1000, 32_000, 60_000, 60_000])
  })

  test('stays a small row and holds the schema whatever a tool says', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 5000 }), fc.double(), (text, execution_time) => {
        const failed = failTodo(fresh(), { ...failure, error: text.repeat(3), execution_time })
        const done = completeTodo(failed, {
          now,
          tool_used: '',
          execution_time,
          output: `${text}😀`.repeat(2),
        })
        expect(todoSchema.parse(done)).toEqual(done)
        expect(JSON.stringify(done).length).toBeLessThan(40_000)
      }),
    )
  })
})

describe('waiting and blocked todos', () => {
  test('the earliest retry is waited for when nothing else is left', () => {
    const todos = planned([task('a'), task('b'), task('c', ['a', 'b'])])
    const once = failTodo(find(todos, 'a'), failure)
    const twice = failTodo(failTodo(find(todos, 'b'), failure), failure)
    const waiting = replaced(replaced(todos, once), twice)
    expect(findWaitEnd(waiting, now)).toEqual(later(1000))
    expect(findWaitEnd(waiting, later(1000))).toBeNull()
    expect(listReadyTodos(waiting, later(1000)).map((todo) => todo.id)).toEqual(['a'])
    expect(findWaitEnd(replaced(waiting, find(todos, 'b')), now)).toBeNull()
    expect(findWaitEnd(replaced(waiting, startTodo(find(todos, 'b'))), now)).toBeNull()
    expect(findWaitEnd([], now)).toBeNull()
  })

  test('what depends on a failed todo is blocked, also through others, and is not waited for', () => {
    const todos = planned([task('a', [], { max_retry: 0 }), task('b', ['a']), task('c', ['b']), task('w')])
    const stuck = replaced(
      replaced(todos, failTodo(find(todos, 'a'), failure)),
      failTodo(find(todos, 'w'), failure),
    )
    expect(listBlockedTodos(stuck).map((todo) => todo.id)).toEqual(['b', 'c'])
    expect(findWaitEnd(stuck, now)).toBeNull()
  })

  test('there is always something to do, to wait for, in work or blocked until all is finished', () => {
    fc.assert(
      fc.property(todoListsAfterWork, (todos) => {
        const unfinished = todos.filter((todo) => todo.status === 'pending' || todo.status === 'processing')
        const until = findWaitEnd(todos, now)
        const somethingElse =
          listReadyTodos(todos, now).length > 0 ||
          listBlockedTodos(todos).length > 0 ||
          todos.some((todo) => todo.status === 'processing')
        expect(until !== null || somethingElse).toBe(unfinished.length > 0)
        if (until) expect(listReadyTodos(todos, until).length).toBeGreaterThan(0)
        if (until) expect(until.getTime()).toBeGreaterThan(now.getTime())
      }),
    )
  })
})
