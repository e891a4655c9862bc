// asserts: invariants

import { describe, expect, test } from 'vitest'
import { readTrajectory } from '../../src/features/trajectories/read-trajectory.ts'
import { dialogueExamples, repliesOf } from '../support/dialogue-examples.ts'
import { serversMissing, type WorkerProcess } from '../support/processes.ts'
import { calling, say } from '../support/script.ts'
import { deadline } from '../support/test-runtime.ts'
import { testInAll } from '../support/tier.ts'
import { expectWhole, onServers, useWorld } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('a worker that is killed'), () => {
  const world = useWorld()
  const knock = (key: string, tool = 'gate_read'): [string, object] => [tool, { url: world.gate.url, key }]
  const die = async (worker: WorkerProcess, runId: string): Promise<void> => {
    worker.signal('SIGKILL')
    await worker.exited
    await world.lapse(runId)
  }
  /** How often each key was knocked for. */
  const knocks = (): Record<string, number> => {
    const counts: Record<string, number> = {}
    for (const { key } of world.gate.knocks) counts[key] = (counts[key] ?? 0) + 1
    return counts
  }

  test('while the model answers: another worker repeats that call and nothing else, and a follower sees every action once', async () => {
    const { model } = world
    const step = calling(['calculate', { expression: '6*7' }])
    say(model, { planner: [step, { hold: true, text: 'lost' }, { text: 'It is 42.' }] })
    const first = await world.startWorker()
    const runId = await world.submit('What is six times seven?')
    const followed = world.follow(runId)
    await followed.acted('reflection')
    await model.received(2, 'planner')
    await world.startWorker()
    await die(first, runId)
    const { run, nodes } = await world.finish(runId)
    expect(run).toMatchObject({ status: 'completed', answer: 'It is 42.' })
    expect(nodes.filter((node) => node === 'calculate')).toHaveLength(1)
    expect(model.requests('planner')).toHaveLength(3)
    expectWhole(await followed.ended)
  })

  test('while a tool changes something outside: the same effect under the same key, once in the ledger', async () => {
    const { model, gate } = world
    gate.onKnock((_, nth) => ({ hold: nth === 1 }))
    say(model, {
      planner: [calling(knock('pay', 'gate_write')), { text: 'Paid.' }],
      reflection: [{ text: '{"is_sufficient":true}' }],
    })
    const first = await world.startWorker()
    const runId = await world.submit('Pay')
    const followed = world.follow(runId)
    await gate.waitsFor(['pay'])
    await world.startWorker()
    await die(first, runId)
    const { run, nodes } = await world.finish(runId)
    expect(run.answer).toBe('Paid.')
    expect(nodes.filter((node) => node === 'gate_write')).toHaveLength(1)
    expect(new Set(gate.knocks.map(({ effect }) => effect)).size).toBe(1)
    expect(new Set(gate.knocks.map(({ pid }) => pid)).size).toBe(2)
    expect(model.requests('planner')).toHaveLength(2)
    expectWhole(await followed.ended)
  })

  const parallel = [
    ['a', 'gate_read'],
    ['b', 'gate_read'],
    ['c', 'gate_look'],
  ] as const
  test('after call 1 of three that run together: another makes the missing ones only', async () => {
    const { model, gate } = world
    gate.onKnock(() => ({ hold: true }))
    say(model, {
      planner: [calling(...parallel.map(([key, tool]) => knock(key, tool))), { text: 'All three.' }],
    })
    const first = await world.startWorker()
    const runId = await world.submit('Three at once')
    const followed = world.follow(runId)
    await gate.waitsFor(['a', 'b', 'c'])
    gate.release('b')
    await followed.acted('gate_read', 1)
    await world.startWorker()
    await die(first, runId)
    const missing = parallel.map(([one]) => one).filter((one) => one !== 'b')
    await gate.knocked(5)
    await gate.waitsFor(missing)
    gate.release()
    const { run, state } = await world.finish(runId)
    expect(run.answer).toBe('All three.')
    expect(knocks()).toEqual(Object.fromEntries(parallel.map(([one]) => [one, one === 'b' ? 1 : 2])))
    const calls = (state.action_history[0] ?? []).flatMap(({ result }) => (result.call ? [result.call] : []))
    expect(calls.map((call) => (call as { index: number }).index).sort()).toEqual([0, 1, 2])
    expect(model.requests('planner')).toHaveLength(2)
    expectWhole(await followed.ended)
  })

  // one write of a worker that died is above
  testInAll('after call 1 of three in order: another goes on with the next', async () => {
    const { model, gate } = world
    const keys = ['one', 'two', 'three']
    gate.onKnock(() => ({ hold: true }))
    say(model, {
      planner: [calling(...keys.map((key) => knock(key, 'gate_write'))), { text: 'In order.' }],
      reflection: [{ text: '{"is_sufficient":true}' }],
    })
    const first = await world.startWorker()
    const runId = await world.submit('One after the other')
    const followed = world.follow(runId)
    await gate.waitsFor(['one'])
    gate.release('one')
    await followed.acted('gate_write', 0)
    await gate.waitsFor(['two'])
    await world.startWorker()
    await die(first, runId)
    await gate.knocked(3)
    gate.onKnock(() => ({}))
    gate.release()
    const { run } = await world.finish(runId)
    expect(run.answer).toBe('In order.')
    expect(knocks()).toEqual({ one: 1, two: 2, three: 1 })
    expect(new Set(gate.knocks.map(({ effect }) => effect)).size).toBe(3)
    expectWhole(await followed.ended)
  })

  test('while its run waits: the wait ends while no worker is up, and the next one goes on from there', async () => {
    say(world.model, { planner: [calling(['gate_wait', { waits: [{ ref: 'job' }] }]), { text: 'Done.' }] })
    const first = await world.startWorker()
    const runId = await world.submit('Wait')
    const followed = world.follow(runId)
    await first.reported('left', ({ left }) => left === 'parked')
    first.signal('SIGKILL')
    await first.exited
    await world.endWait('job')
    await world.startWorker()
    const { run, nodes } = await world.finish(runId)
    expect(run).toMatchObject({ status: 'completed', answer: 'Done.' })
    expect(nodes.filter((node) => node === 'gate_wait')).toHaveLength(1)
    expect(world.model.requests('planner')).toHaveLength(2)
    expectWhole(await followed.ended)
  })

  // `dialogue/examples` plays them, `engine/runs/orders` has a death at each commit
  testInAll(
    'again and again between any two commits: the examples of the requirement come out byte for byte',
    async () => {
      const { model, api } = world
      const examples = Object.entries(dialogueExamples)
      // by the replies that it has before it, since a worker that was killed may have asked already
      model.script(({ role, messages }) => {
        const said = messages.map(({ content }) => String(content)).join('\n')
        const [, example = ''] = examples.find(([name]) => said.includes(name)) ?? []
        const asked = messages.filter((one) => one.role === 'assistant').length
        return role === 'planner' ? { text: repliesOf(example)[asked] ?? 'no more' } : undefined
      })
      const runs = await Promise.all(examples.map(([name]) => world.submit(name)))
      const ended = Promise.all(runs.map((runId) => api.wait(runId, deadline(110_000)))).then(() => true)
      let deaths = 0
      for (let isOver = false; !isOver; deaths++) {
        const diesAfter = deaths === 0 ? 3 : 6
        const worker = await world.startWorker({ dialect: 'xml', diesAfter })
        isOver = await Promise.race([worker.exited.then(() => false), ended])
        if (!isOver) for (const runId of runs) await world.lapse(runId)
      }
      expect(deaths).toBeGreaterThan(3)
      for (const [at, runId] of runs.entries()) {
        expect((await world.finish(runId)).run).toMatchObject({ status: 'completed', error: null })
        expect((await readTrajectory(api, world.graph, runId))?.text).toBe(examples[at]?.[1])
      }
    },
  )
})
