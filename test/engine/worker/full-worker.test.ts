// backends: either

import { describe, expect } from 'vitest'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Queues } from '../../../src/infra/queue/queues.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import { waitedFor } from '../../support/clock.ts'
import { runtimeTest as test } from '../../support/integration-test.ts'
import { until } from '../../support/runs.ts'
import { deadline, fakeModels, openTestRuntime } from '../../support/test-runtime.ts'

/** A queue whose own wake-ups are lost: only those that `ring` sends, and those passed on, arrive, once `listen` was called. */
const wired = () => {
  const taken: string[] = []
  let queues: Queues | null = null
  let listen: () => Promise<unknown> = async () => {}
  const wrap = (opened: Queues): Queues => {
    queues = opened
    return {
      ...opened,
      wakeMany: async () => {},
      wake: (wakeUp) => (taken.includes(wakeUp.run_id) ? opened.wake(wakeUp) : Promise.resolve()),
      async onWakeUp(handler, options) {
        const begin = () =>
          opened.onWakeUp((wakeUp, signal) => {
            taken.push(wakeUp.run_id)
            return handler(wakeUp, signal)
          }, options)
        listen = begin
        return { pause: async () => {}, close: async () => {} }
      },
    }
  }
  const ring = (run_id: string) => (queues as unknown as Queues).wake({ run_id, business_id: 'default' })
  return { wrap, taken, ring, listen: () => listen() }
}

// embedded there is one worker only
describe.skipIf(process.env.MASON_TEST_BACKEND !== 'served')('a wake-up', () => {
  test('that comes to a full worker goes on to an idle one', async ({ backend, model }) => {
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
      await fullRuntime.startWorker({ concurrency: 1, maxRuns: 1 })
      await until('the run to be held', () => model.held() === 1)
      model.script({ planner: [{ text: 'Done.' }, { text: 'Done.' }] } as never)
      const done = await submit()
      await idleRuntime.startWorker({ concurrency: 1 })
      expect((await api.wait(done, deadline())).status).toBe('completed')
      await full.listen()
      const next = await submit()
      const waited = waitedFor()
      for (let sent = 0; sent < 50; sent++) await idle.ring(next)
      await until('the full one to have passed on several', () => full.taken.length >= 5)
      // a backlog does not spin: each wake-up waits a while for a permit
      expect(waited(300)).toBe(true)
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
