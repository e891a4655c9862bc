import { describe, expect, test } from 'vitest'
import type { VisitTarget } from '../../src/graph/route.ts'
import { createRouter } from '../../src/graph/router.ts'

const to = (...nodes: string[]): VisitTarget[] => nodes.map((node, index) => ({ node, call: index }))
const never = new AbortController().signal

/**
 * The router writes to LangGraph's engine by names that its documentation does not promise (docs/decisions/0010). These
 * tests fail when a new version of the library treats them differently.
 */
describe('the router on the engine of LangGraph', () => {
  test('visits the first targets and then those that each visit names, with the walk and the call of each', async () => {
    const visits: [walk: string, node: string, call: number | null][] = []
    const walk = createRouter<string>(['a', 'b', 'c'], async (name, { node, call }) => {
      visits.push([name, node, call])
      return node === 'a' ? to('b', 'c') : []
    })
    await walk('one', [{ node: 'a', call: null }], never)
    expect(visits).toEqual([
      ['one', 'a', null],
      ['one', 'b', 0],
      ['one', 'c', 1],
    ])
    await walk('none', [], never)
    expect(visits).toHaveLength(3)
  })

  test('runs the targets of one visit at the same time', async () => {
    const waiting: (() => void)[] = []
    const walk = createRouter<null>(['a', 'b'], async (_, { node, call }) => {
      if (node === 'a' && call === null) return to('b', 'b', 'b')
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
        if (waiting.length === 3) for (const go of waiting) go()
      })
      return []
    })
    await walk(null, [{ node: 'a', call: null }], never)
    expect(waiting).toHaveLength(3)
  })

  test('runs at most 100 targets at the same time, and all of them in the end', async () => {
    const open: (() => void)[] = []
    let visits = 0
    let most = 0
    const walk = createRouter<null>(['a'], async () => {
      visits++
      await new Promise<void>((resolve) => {
        most = Math.max(most, open.push(resolve))
        setImmediate(() => open.shift()?.())
      })
      return []
    })
    await walk(
      null,
      Array.from({ length: 250 }, (_, call) => ({ node: 'a', call })),
      never,
    )
    expect([visits, most]).toEqual([250, 100])
  })

  test('takes as many steps as there are', async () => {
    let steps = 0
    const walk = createRouter<null>(['a'], async () => (++steps < 1000 ? to('a') : []))
    await walk(null, to('a'), never)
    expect(steps).toBe(1000)
  })

  test('goes on in a straight line, and leaves choices and fan-outs to the engine', async () => {
    const visits: string[] = []
    const asked: string[] = []
    const next: Record<string, VisitTarget[]> = {
      a: [{ node: 'b', call: null }],
      b: to('c', 'c'),
      c: [{ node: 'd', call: null }],
    }
    const walk = createRouter<string>(
      ['a', 'b', 'c', 'd'],
      async (_, { node }) => {
        visits.push(node)
        return visits.filter((one) => one === node).length === (node === 'c' ? 2 : 1)
          ? (next[node] ?? [])
          : []
      },
      (name, from, target) => {
        asked.push(`${name}: ${from.node}-${target.node}`)
        return from.node === 'a'
      },
    )
    await walk('one', [{ node: 'a', call: null }], never)
    expect(visits).toEqual(['a', 'b', 'c', 'c', 'd'])
    expect(asked).toEqual(['one: a-b', 'one: c-d'])
  })

  test('ends in the middle of a straight line when the signal fires', async () => {
    const stop = new AbortController()
    const visits: string[] = []
    const walk = createRouter<null>(
      ['a'],
      async (_, target) => {
        if (visits.push(target.node) === 3) stop.abort(new Error('enough'))
        return [{ node: 'a', call: null }]
      },
      () => true,
    )
    await expect(walk(null, [{ node: 'a', call: null }], stop.signal)).rejects.toThrow('enough')
    expect(visits).toHaveLength(3)
  })

  test('keeps walks that run at the same time apart', async () => {
    const walk = createRouter<{ left: number; seen: number }>(['a'], async (own) => {
      own.seen++
      await Promise.resolve()
      return own.seen < own.left ? to('a') : []
    })
    const walks = [3, 7, 5].map((left) => ({ left, seen: 0 }))
    await Promise.all(walks.map((own) => walk(own, to('a'), never)))
    expect(walks.map(({ seen }) => seen)).toEqual([3, 7, 5])
  })

  test('ends with the error of one branch without waiting for the others', async () => {
    const broken = new Error('broken')
    const walk = createRouter<null>(['a', 'b'], async (_, { node }) => {
      if (node === 'b') throw broken
      return new Promise<never>(() => {})
    })
    await expect(walk(null, to('a', 'b'), never)).rejects.toBe(broken)
  })

  test('ends when the signal is aborted, and starts no further visit', async () => {
    const control = new AbortController()
    let visits = 0
    const walk = createRouter<null>(['a'], async () => {
      visits++
      control.abort(new Error('stopped'))
      return to('a')
    })
    await expect(walk(null, to('a'), control.signal)).rejects.toThrow()
    expect(visits).toBe(1)
  })
})
