import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/infra/clock.ts'
import type { Queues } from '../../src/infra/queue/queue.ts'
import type { Clock } from '../../src/state/ports.ts'
import { type Backend, openBackend } from '../support/backend.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model.ts'
import { until } from '../support/spine.ts'
import { deadline, fakeModels, openTestRuntime } from '../support/test-runtime.ts'

let backend: Backend
let model: FakeModel

beforeAll(async () => {
  backend = await openBackend()
  model = await startFakeModel()
})
afterAll(async () => {
  await model?.close()
  await backend?.drop()
})

/** A queue whose own bells are lost: only what `ring` sends, and what is passed on, is heard, once `listen` was called. */
const wired = () => {
  const taken: string[] = []
  let queues: Queues | null = null
  let listen: () => Promise<unknown> = async () => {}
  const wrap = (opened: Queues): Queues => {
    queues = opened
    return {
      ...opened,
      ringMany: async () => {},
      ring: (bell, options) => (taken.includes(bell.run_id) ? opened.ring(bell, options) : Promise.resolve()),
      async onBell(handler, options) {
        const begin = () =>
          opened.onBell((bell, signal) => {
            taken.push(bell.run_id)
            return handler(bell, signal)
          }, options)
        listen = begin
        return { pause: async () => {}, close: async () => {} }
      },
    }
  }
  const ring = (run_id: string) => (queues as unknown as Queues).ring({ run_id, business_id: 'default' })
  return { wrap, taken, ring, listen: () => listen() }
}

// embedded there is one worker only
describe.skipIf(process.env.MASON_TEST_BACKEND !== 'served')('a bell', () => {
  test('that comes to a worker which is full goes on to one that is idle', async () => {
    const models = fakeModels(model.baseUrl)
    const [full, idle] = [wired(), wired()]
    // the ten seconds never pass after which a worker looks again by itself
    const clock: Clock = {
      ...systemClock,
      sleep: (ms, signal) => systemClock.sleep(ms < 10_000 ? ms : 3_600_000, signal),
    }
    const open = (queues: typeof full) =>
      openTestRuntime(backend, { models, worker: false, wrap: { queues: queues.wrap }, clock })
    const [fullRuntime, idleRuntime] = [await open(full), await open(idle)]
    const api = idleRuntime.of('default')
    const submit = async () => (await api.submit({ prompt: 'x', user_id: 'u1' })).run.id
    try {
      // each finds a run when it looks for the first time: one is full from then on, the other is done
      model.script({ planner: [{ hold: true, text: 'Held.' }] } as never)
      const held = await submit()
      await fullRuntime.startWorker({ concurrency: 1 })
      await until('the run to be held', () => model.held() === 1)
      model.script({ planner: [{ text: 'Done.' }, { text: 'Done.' }] } as never)
      const done = await submit()
      await idleRuntime.startWorker({ concurrency: 1 })
      expect((await api.wait(done, deadline())).status).toBe('completed')
      await full.listen()
      const next = await submit()
      const since = performance.now()
      for (let bells = 0; bells < 50; bells++) await idle.ring(next)
      await until('the full one to have passed on several', () => full.taken.length >= 5)
      // a backlog is not spun through: each bell waits a while for a place
      expect(performance.now() - since).toBeGreaterThan(300)
      await idle.listen()
      expect((await api.wait(next, deadline())).status).toBe('completed')
      expect(model.held()).toBe(1)
      model.release()
      expect((await api.wait(held, deadline())).status).toBe('completed')
    } finally {
      model.release()
      await Promise.all([fullRuntime.close(), idleRuntime.close()])
    }
  })
})
