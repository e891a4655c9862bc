import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { todoSchema } from '../../src/state/runtime-state.ts'
import {
  applyTodoChanges,
  failTodo,
  findWaitEnd,
  listBlockedTodos,
  listReadyTodos,
  todoChangesSchema,
} from '../../src/state/todos.ts'
import { acyclic, failure, find, now, planErrorOf, planned, replaced, task } from '../support/todos.ts'

describe('planning todos', () => {
  test('fills the defaults of the schema', () => {
    const [todo] = planned([{ id: '1', task: 'read the file' }])
    expect(todoSchema.parse(todo)).toEqual(todo)
    expect(todo).toMatchObject({
      status: 'pending',
      priority: 5,
      max_retry: 3,
      retry: 0,
      critical_path_length: 1,
    })
  })

  test('keeps status, retries, history and fields that are not named of a known todo', () => {
    const before = planned([
      task('a', [], { priority: 9, success_criteria: 'sum is right' }),
      task('b', ['a']),
    ])
    const failed = failTodo(find(before, 'a'), failure)
    const after = planned([{ id: 'a', task: 'do a better' }], replaced(before, failed))
    expect(find(after, 'a')).toEqual({ ...failed, task: 'do a better' })
    expect(after.map((todo) => todo.id)).toEqual(['a', 'b'])
  })

  test('returns only what changed, whatever the order of keys', () => {
    const before = planned([task('a'), task('b', ['a']), task('c')])
    const same = applyTodoChanges(before, [task('a'), task('b', ['a'])])
    expect(same).toMatchObject({ ok: true, changed: [] })
    const grown = applyTodoChanges(before, [task('d', ['b'])])
    expect(grown.ok && grown.changed.map((todo) => [todo.id, todo.critical_path_length])).toEqual([
      ['a', 3],
      ['b', 2],
      ['d', 1],
    ])
  })

  test('moves a todo where the planner says so', () => {
    const before = planned([task('a', [], { max_retry: 0 })])
    const failed = failTodo(find(before, 'a'), failure)
    const [again] = planned([task('a', [], { status: 'pending' })], [failed])
    expect(again).toMatchObject({ status: 'pending', retry: 1, retry_after: null })
    expect(again?.error_history).toHaveLength(1)
    const waiting = failTodo(find(planned([task('w')]), 'w'), failure)
    expect(planned([task('w', [], { status: 'pending' })], [waiting])).toEqual([waiting])
  })

  test('refuses what makes no plan, and names it', () => {
    expect(planErrorOf([task('a', ['x'])])).toBe(
      "Unknown dependencies: 'a' depends on 'x'. The todos are: a.",
    )
    expect(planErrorOf([task('a'), task('a')])).toBe('Each id may stand once; repeated: a.')
    expect(planErrorOf([task('a', ['a'])])).toContain('cycle: a -> a.')
    expect(planErrorOf([task('z', ['b']), task('b', ['c']), task('c', ['b'])])).toContain(
      'cycle: b -> c -> b.',
    )
    expect(planErrorOf([task('a', ['b'])], planned([task('b'), task('a')]))).toBe('no error')
    expect(planErrorOf([task('b', ['a'])], planned([task('b'), task('a', ['b'])]))).toContain('b -> a -> b')
    expect(planErrorOf([task('__proto__', ['constructor'])])).toContain("'constructor'")
  })

  test('every list without a cycle makes a plan that holds the schema, and planning it again changes nothing', () => {
    fc.assert(
      fc.property(acyclic, (wanted) => {
        const todos = planned(wanted)
        expect(todoSchema.array().parse(todos)).toEqual(todos)
        expect(applyTodoChanges(todos, wanted)).toEqual({ ok: true, todos, changed: [] })
      }),
    )
  })

  test('a cycle put into any list is found, and what is named is one', () => {
    fc.assert(
      fc.property(acyclic, fc.array(fc.nat(), { minLength: 1, maxLength: 6 }), (wanted, picks) => {
        const members = [...new Set(picks.map((pick) => pick % wanted.length))]
        const cyclic = wanted.map((item) => ({ ...item, dependencies: [...(item.dependencies ?? [])] }))
        members.forEach((member, at) => {
          const next = cyclic[members[(at + 1) % members.length] ?? 0]
          if (next) cyclic[member]?.dependencies.push(next.id)
        })
        const named = /cycle: (.*)\. Take/.exec(planErrorOf(cyclic))?.[1]?.split(' -> ') ?? []
        expect(named.length).toBeGreaterThan(1)
        expect(named.at(-1)).toBe(named[0])
        expect(new Set(named).size).toBe(named.length - 1)
        named.slice(1).forEach((id, at) => {
          expect(cyclic.find((item) => item.id === named[at])?.dependencies).toContain(id)
        })
      }),
    )
  })

  test('critical path lengths are one more than the longest of the dependents', () => {
    fc.assert(
      fc.property(acyclic, (wanted) => {
        const todos = planned(wanted)
        for (const todo of todos) {
          const waiting = todos.filter((other) => other.dependencies.includes(todo.id))
          const longest = Math.max(0, ...waiting.map((other) => other.critical_path_length))
          expect(todo.critical_path_length).toBe(1 + longest)
        }
      }),
    )
  })

  test('takes the input schema, and has a JSON Schema for the model', () => {
    expect(todoChangesSchema.safeParse([{ id: '1', task: 'x' }]).success).toBe(true)
    expect(todoChangesSchema.safeParse([{ id: '1', task: 'x', retry: 3 }]).success).toBe(false)
    expect(JSON.stringify(z.toJSONSchema(todoChangesSchema))).toContain('success_criteria')
  })
})

test('a chain of 1,000 todos is planned, changed and read like any other', () => {
  const chain = Array.from({ length: 1000 }, (_, at) =>
    task(`t${at}`, at === 0 ? [] : [`t${at - 1}`, `t${at >> 1}`]),
  )
  const todos = planned(chain)
  expect(applyTodoChanges(todos, chain)).toMatchObject({ ok: true, changed: [] })
  expect(listReadyTodos(todos, now).map(({ id }) => id)).toEqual(['t0'])
  expect(listBlockedTodos(todos)).toEqual([])
  expect(findWaitEnd(todos, now)).toBeNull()
  expect(find(todos, 't0').critical_path_length).toBe(1000)
})
