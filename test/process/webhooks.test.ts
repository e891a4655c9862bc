// asserts: invariants

import { describe, expect, test } from 'vitest'
import { webhooksRef } from '../../src/features/webhooks/webhooks.ref.ts'
import { serversMissing, type WorkerProcess } from '../support/processes.ts'
import { until } from '../support/runs.ts'
import { say } from '../support/script.ts'
import { isGate } from '../support/tier.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { onServers, useWorld } from './servers.ts'

/** How often a worker is killed between sending a webhook and recording its answer. */
const kills = Number(process.env.MASON_WEBHOOK_KILLS ?? (isGate ? 1 : 2))

describe.skipIf(serversMissing !== null)(onServers('a webhook whose worker is killed'), () => {
  const world = useWorld()

  test('before it recorded the answer is sent again by another worker, under the same id', async () => {
    let worker: WorkerProcess | null = null
    // the product has the webhook; its worker never hears so
    const receiver = await startWebhookReceiver((_, nth) => {
      if (nth > kills) return 204
      worker?.signal('SIGKILL')
      return false
    })
    try {
      await world.features
        .get(webhooksRef)
        .settings.change('default', { url: receiver.url, allow_private: true })
      say(world.model, { planner: [{ text: 'Done.' }] })
      worker = await world.startWorker()
      const { run } = await world.finish(await world.submit('Be done'))
      for (let at = 0; at < kills; at++) {
        await (worker as WorkerProcess).exited
        await world.lapseWebhooks()
        worker = await world.startWorker()
      }
      const delivered = await until('it is delivered', async () => {
        const { data } = await world.features.get(webhooksRef).list({ run_id: run.id }, { limit: 10 })
        return data[0]?.status === 'delivered' && data
      })
      expect(delivered).toMatchObject([{ type: 'run.completed', attempts: kills + 1, last_status: 204 }])
      expect(receiver.received).toHaveLength(kills + 1)
      expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
      expect(new Set(receiver.received.map(({ text }) => text)).size).toBe(1)
    } finally {
      await receiver.close()
    }
  })
})
