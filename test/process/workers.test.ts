// asserts: invariants

import { describe, expect, test } from 'vitest'
import { serversMissing } from '../support/processes.ts'
import { calling, say } from '../support/script.ts'
import { isGate } from '../support/tier.ts'
import { expectWhole, onServers, useWorld } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('several workers'), () => {
  const world = useWorld()
  const knock = (key: string, tool = 'gate_read'): [string, object] => [tool, { url: world.gate.url, key }]

  test('share the work: each run is done once, and each worker did some', async () => {
    const { model, gate } = world
    gate.onKnock(() => ({ hold: true }))
    const workers = await Promise.all([1, 2].map(() => world.startWorker({ concurrency: 2 })))
    model.script(({ role, messages }) => {
      if (role !== 'planner') return undefined
      return messages.some((message) => message.role === 'tool') ? { text: 'Done.' } : calling(knock('x'))
    })
    const runs = await Promise.all(Array.from({ length: 20 }, (_, n) => world.submit(`job ${n}`)))
    // none gets through before both workers have their hands full
    await gate.waitsFor(['x', 'x', 'x', 'x'])
    gate.onKnock(() => ({}))
    gate.release()
    for (const runId of runs) expect((await world.finish(runId)).run.answer).toBe('Done.')
    expect(gate.knocks).toHaveLength(20)
    expect(new Set(gate.knocks.map(({ run }) => run)).size).toBe(20)
    const pids = new Set(gate.knocks.map(({ pid }) => pid))
    expect(pids).toEqual(new Set(workers.map(({ pid }) => pid)))
  })

  test('include one frozen beyond its lease, which writes nothing when it resumes, and nothing is doubled', async () => {
    const { model, gate } = world
    gate.onKnock((_, nth) => ({ hold: nth === 1 }))
    say(model, { planner: [calling(knock('x')), { text: 'Done.' }] })
    const frozen = await world.startWorker({ leaseMs: 2000 })
    const runId = await world.submit('freeze')
    const followed = world.follow(runId)
    await gate.waitsFor(['x'])
    frozen.signal('SIGSTOP')
    await world.startWorker()
    await world.lapsed(runId)
    const { run, state } = await world.finish(runId)
    expect(run.answer).toBe('Done.')
    expectWhole(await followed.ended)
    gate.release()
    frozen.signal('SIGCONT')
    expect((await frozen.reported('left')).left).toBe('lost')
    expect((await world.finish(runId)).state).toEqual(state)
    expect(model.requests('planner')).toHaveLength(2)
  })

  test('include one that is stopped, hands its runs back and exits cleanly; the runs go on elsewhere', async () => {
    const { model, gate } = world
    gate.onKnock((_, nth) => ({ hold: nth === 1 }))
    say(model, {
      planner: [calling(knock('x', 'gate_write')), { text: 'Done.' }],
      reflection: [{ text: '{"is_sufficient":true}' }],
    })
    const stopping = await world.startWorker()
    const runId = await world.submit('stop')
    await gate.waitsFor(['x'])
    await world.startWorker()
    stopping.signal('SIGTERM')
    expect(await stopping.exited).toEqual({ code: 0, signal: null })
    expect(await stopping.reported('left')).toMatchObject({ run_id: runId, left: 'handed_back' })
    const { run, nodes } = await world.finish(runId)
    expect(run.answer).toBe('Done.')
    expect(nodes.filter((node) => node === 'gate_write')).toHaveLength(1)
    expect(new Set(gate.knocks.map(({ effect }) => effect)).size).toBe(1)
    expect(model.requests('planner')).toHaveLength(2)
  })
})

// `engine/runs/relay` has it, by claims of one process
describe.skipIf(serversMissing !== null || isGate)(onServers('a run that kills its workers'), () => {
  const world = useWorld()

  test('is given up as poison after five claims without a new action; its neighbors come through', async () => {
    const { model, gate } = world
    model.script(({ role, messages }) => {
      if (role !== 'planner') return undefined
      const deadly = JSON.stringify(messages).includes('deadly')
      if (deadly) return calling(['gate_kill', {}])
      if (messages.some((message) => message.role === 'tool')) return { text: 'Done.' }
      return calling(['gate_read', { url: gate.url, key: 'x' }])
    })
    const poison = await world.submit('deadly')
    const neighbors = await Promise.all(['a', 'b', 'c'].map((name) => world.submit(name)))
    const ended = Promise.all([poison, ...neighbors].map(world.finish))
    let isOver = false
    while (!isOver) {
      const worker = await world.startWorker().catch(() => null)
      isOver = await Promise.race([worker?.exited.then(() => false) ?? false, ended.then(() => true)])
      // none is alive that could hold one
      if (!isOver) await world.lapseAll()
    }
    const [given, ...others] = await ended
    // the first claim brought actions; five more brought none
    expect(given?.run).toMatchObject({
      status: 'failed',
      error: { code: 'poison', message: expect.stringMatching(/^5 workers took this run/) },
    })
    expect(given?.nodes).toEqual(['load-session', 'user-context', 'planner', 'end'])
    expect(others.map(({ run }) => run.answer)).toEqual(['Done.', 'Done.', 'Done.'])
  })
})
