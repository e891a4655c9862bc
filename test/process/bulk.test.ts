// tier: all

import { describe, expect, test } from 'vitest'
import { bulkRef } from '../../src/features/bulk/bulk.ref.ts'
import { serversMissing } from '../support/processes.ts'
import { until } from '../support/runs.ts'
import { say } from '../support/script.ts'
import { onServers, useWorld } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('a list of runs'), () => {
  const world = useWorld()

  test('is finished by another worker where one is killed in the middle, and each run is retried once', async () => {
    const { model, api } = world
    const bulk = world.features.get(bulkRef).of('default')
    say(model, { planner: [{ text: 'Done.' }] })
    const failed = await world.submitFailed(20)
    const { id } = await bulk.list({ action: 'retry', filter: { error: 'poison' } })
    // of the second eight, some retries are committed and not written down
    const killed = await world.startWorker({ diesInBulkAt: 12 })
    await bulk.confirm(id)
    expect((await killed.exited).signal).toBe('SIGKILL')
    expect(await bulk.get(id)).toMatchObject({ status: 'running', count: 20 })
    expect((await bulk.get(id))?.done).toBeLessThan(12)
    await world.lapseBulk()
    await world.startWorker()
    const job = await until('the list is finished', async () => {
      const read = await bulk.get(id)
      return read?.status === 'completed' && read
    })
    expect(job).toMatchObject({ done: 20, refused: 0 })
    const { data } = await api.runs({ limit: 100 })
    expect(data.flatMap(({ retry_of }) => retry_of ?? []).sort()).toEqual(failed.toSorted())
  })
})
