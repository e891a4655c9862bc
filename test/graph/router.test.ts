import { describe, expect, test } from 'vitest'
import type { VisitTarget } from '../../src/graph/route.ts'
import { createRouter, type Router, type VisitStep } from '../../src/graph/router.ts'

/** A router whose nodes may each lead to any other. `tasks`: what LangGraph was given to do. */
const routerOf = <Walk>(
  names: string[],
  step: VisitStep<Walk>,
  tasks: string[] = [],
): Router<Walk>['walk'] => {
  const nodes = names.map((name) => ({ name, ends: names }))
  const nodeOf = ({ node }: VisitTarget): string => {
    tasks.push(node)
    return node
  }
  return createRouter({ nodes, nodeOf }, step).walk
}
const to = (...nodes: string[]): VisitTarget[] => nodes.map((node, index) => ({ node, call: index }))
const never = new AbortController().signal

describe('the router on a graph of LangGraph', () => {
  test('visits the first targets and then those that each visit names, with the walk and the call of each', async () => {
    const visits: [walk: string, node: string, call: number | null][] = []
    const walk = routerOf<string>(['a', 'b', 'c'], async (name, { node, call }) => {
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
    const walk = routerOf<null>(['a', 'b'], async (_, { node, call }) => {
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
    const walk = routerOf<null>(['a'], async () => {
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

  test('takes as many steps as there are, in a straight line and in fan-outs', async () => {
    let steps = 0
    const line = routerOf<null>(['a'], async () => (++steps < 1000 ? to('a') : []))
    await line(null, to('a'), never)
    expect(steps).toBe(1000)
    const fans = routerOf<null>(['a'], async (_, { call }) =>
      call === 0 && ++steps < 1300
        ? [
            { node: 'a', call: 0 },
            { node: 'a', call: null },
          ]
        : [],
    )
    await fans(null, to('a'), never)
    expect(steps).toBe(1300)
  })

  test('goes on in a straight line, and past a fan-out once all of its branches are through', async () => {
    const visits: string[] = []
    const next: Record<string, VisitTarget[]> = {
      a: [{ node: 'b', call: null }],
      b: to('lane', 'c'),
      lane: [{ node: 'd', call: null }],
      d: [{ node: 'e', call: null }],
    }
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const tasks: string[] = []
    const step: VisitStep<null> = async (_, { node, call }) => {
      if (node === 'c') await released
      visits.push(node)
      // the lane goes on by itself, beside the other branch
      if (node === 'lane' && call === 0) return [{ node: 'lane', call: 2 }]
      if (node === 'lane') setImmediate(release)
      return next[node] ?? []
    }
    const walk = routerOf(['a', 'b', 'c', 'd', 'e', 'lane'], step, tasks)
    await walk(null, [{ node: 'a', call: null }], never)
    expect(visits).toEqual(['a', 'b', 'lane', 'lane', 'c', 'd', 'e'])
    expect(tasks).toEqual(['a', 'lane', 'c', 'd'])
  })

  test('ends in the middle of a straight line when the signal fires', async () => {
    const stop = new AbortController()
    const visits: string[] = []
    const walk = routerOf<null>(['a'], async (_, target) => {
      if (visits.push(target.node) === 3) stop.abort(new Error('enough'))
      return [{ node: 'a', call: null }]
    })
    await expect(walk(null, [{ node: 'a', call: null }], stop.signal)).rejects.toThrow('enough')
    expect(visits).toHaveLength(3)
  })

  test('keeps walks that run at the same time apart', async () => {
    const walk = routerOf<{ left: number; seen: number }>(['a'], async (own) => {
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
    const walk = routerOf<null>(['a', 'b'], async (_, { node }) => {
      if (node === 'b') throw broken
      return new Promise<never>(() => {})
    })
    await expect(walk(null, to('a', 'b'), never)).rejects.toBe(broken)
  })

  test('ends when the signal is aborted, and starts no further visit', async () => {
    const control = new AbortController()
    let visits = 0
    const walk = routerOf<null>(['a'], async () => {
      visits++
      control.abort(new Error('stopped'))
      return to('a')
    })
    await expect(walk(null, to('a'), control.signal)).rejects.toThrow()
    expect(visits).toBe(1)
  })
})
