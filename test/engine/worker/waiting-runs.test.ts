// backends: either
// asserts: invariants

import { fileURLToPath } from 'node:url'
import { test as base, describe, expect } from 'vitest'
import { queryOne } from '../../../src/infra/database/database.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { type Backend, openBackend } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { startFakeModel } from '../../support/fake-model/fake-model.ts'
import { startGate } from '../../support/gate-server.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { count, openWithDatabase, until } from '../../support/runs.ts'
import { deadline, fakeModels } from '../../support/test-runtime.ts'
import { isGate } from '../../support/tier.ts'

/** Those of the settings; and the ten seconds never pass after which a worker looks for runs whose wake-ups were lost. */
const defaults = {
  ...{ concurrency: 8, maxRuns: 256 },
  clock: {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms < 10_000 ? ms : 3_600_000, signal),
  },
}

const test = base
  .extend('backend', async ({}, { onCleanup }) => {
    const backend = await openBackend()
    onCleanup(() => backend.drop())
    return backend
  })
  .extend('model', async ({}, { onCleanup }) => {
    const model = await startFakeModel()
    onCleanup(() => model.close())
    return model
  })

const open = async (
  backend: Backend,
  model: FakeModel,
  options: Parameters<typeof openWithDatabase>[1] = {},
) => {
  // a prompt of `held` is answered after a release, any other at once
  model.script((request) => {
    if (request.role !== 'planner') return undefined
    const [held] = /held by \w+/.exec(JSON.stringify(request.body.messages)) ?? []
    return held ? { hold: held, text: 'Late.' } : { text: 'Done.' }
  })
  const opened = await openWithDatabase(backend, {
    models: fakeModels(model.baseUrl),
    ...defaults,
    ...options,
  })
  const submit = async (business: string, prompt: string) =>
    (await opened.runtime.of(business).submit({ prompt, user_id: 'u1' })).run.id
  const submitHeld = (business: string, many: number) =>
    Promise.all(Array.from({ length: many }, () => submit(business, `held by ${business}`)))
  return { ...opened, submit, submitHeld }
}

describe('runs that wait for a model', () => {
  const many = isGate ? 24 : 200
  test(`cost no permit: by default ${many} calls of one business are in flight at once`, async ({
    backend,
    model,
  }) => {
    const { runtime, submitHeld } = await open(backend, model)
    const ids = await submitHeld('flood', many)
    await until('all calls to be in flight', () => model.held() === many)
    model.release()
    for (const id of ids)
      expect(await runtime.of('flood').wait(id, deadline())).toMatchObject({ answer: 'Late.' })
    checkInvariants(await runtime.stateOf(ids[0] as string, 'flood'))
    await runtime.close()
  })

  test('let a run of another business end beside them', async ({ backend, model }) => {
    const { runtime, submit, submitHeld } = await open(backend, model, { concurrency: 2 })
    await submitHeld('flood', 12)
    await until('all calls to be in flight', () => model.held() === 12)
    const id = await submit('other', 'quick')
    expect(await runtime.of('other').wait(id, deadline())).toMatchObject({ answer: 'Done.' })
    expect(model.held()).toBe(12)
    await runtime.close()
  })

  test('leave capacity to other businesses, which take half of it as it becomes free', async ({
    backend,
    model,
  }) => {
    const { runtime, database, submitHeld } = await open(backend, model, { maxRuns: 10 })
    const running = (business: string) =>
      count(database, `runs WHERE tenant = $1 AND status = 'running'`, [business])
    await submitHeld('flood', 40)
    await until('its share to be in flight', () => model.held() === 8)
    await submitHeld('other', 40)
    // what is free besides is shared again, and the last for the next business
    await until('a run of the other business too', () => model.held() === 9)
    expect([await running('flood'), await running('other')]).toEqual([8, 1])
    // submitted side by side, any of them may be the first
    const first = await queryOne<{ id: string }>(
      database,
      `SELECT run_id AS id FROM runs WHERE tenant = 'other' AND status = 'running'`,
      [],
    )
    model.release('held by flood')
    await until('the other business to have its part', async () => {
      const runs = [await running('flood'), await running('other')]
      return model.held() >= 8 && Math.min(...runs) >= 3 && Math.max(...runs) <= 5
    })
    expect(await runtime.of('other').run(first?.id as string)).toMatchObject({ status: 'running' })
    await runtime.close()
  })

  test('are handed back when their worker stops', async ({ backend, model }) => {
    const { runtime, submitHeld } = await open(backend, model)
    await submitHeld('flood', 20)
    await until('all calls to be in flight', () => model.held() === 20)
    await runtime.close()
    if (backend.kind === 'embedded') return
    const elsewhere = await backend.openDatabase()
    expect(
      await count(elsewhere, `runs WHERE status = 'queued' AND lease_owner IS NULL AND stalls = 0`),
    ).toBe(20)
    await elsewhere.close()
  })
})

test('runs that wait for a slow tool cost no permit either', async ({ backend, model }) => {
  await using gate = await startGate()
  gate.onKnock(() => ({ hold: true }))
  const toolFolders = [fileURLToPath(new URL('../../support/gate-tools', import.meta.url))]
  const { runtime, submit } = await open(backend, model, { toolFolders, concurrency: 2 })
  model.script(({ role, body }) => {
    if (role !== 'planner' || !JSON.stringify(body.messages).includes('slow tool')) return undefined
    return { tool_calls: [{ name: 'gate_read', arguments: { url: gate.url, key: 'slow' } }] }
  })
  for (let n = 0; n < 12; n++) await submit('flood', 'call the slow tool')
  await gate.knocked(12)
  const id = await submit('other', 'quick')
  expect(await runtime.of('other').wait(id, deadline())).toMatchObject({ answer: 'Done.' })
  expect(gate.held()).toHaveLength(12)
  await runtime.close()
})
