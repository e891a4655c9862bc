// asserts: invariants

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Config } from '../../src/infra/config/config.ts'
import { openEmbeddedDatabase } from '../../src/infra/database/embedded.ts'
import type { RunView } from '../../src/state/run-view.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { baseConfig } from '../support/backend.ts'
import { startFakeModel } from '../support/fake-model/fake-model.ts'
import { checkInvariants } from '../support/invariants.ts'
import { createProcesses } from '../support/processes.ts'
import { calling, say } from '../support/script.ts'
import { testInAll } from '../support/tier.ts'

const processes = createProcesses()
const folders: string[] = []
afterEach(async () => {
  await processes.end()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

const openFolder = async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'mason-embedded-'))
  folders.push(dataDir)
  return { ...baseConfig, database: { kind: 'embedded', dataDir }, redisUrl: null } satisfies Config
}

describe('the embedded runtime', () => {
  test('killed in the middle of a run and started again on the same folder finishes it', async () => {
    await using model = await startFakeModel()
    const step = calling(['calculate', { expression: '6*7' }])
    say(model, { planner: [step, { hold: true, text: 'lost' }, { text: 'It is 42.' }] })
    const task = { config: await openFolder(), modelUrl: model.baseUrl }
    const first = await processes.start({
      ...task,
      submit: { prompt: 'What is six times seven?', user_id: 'u1' },
    })
    const { run_id } = await first.reported('submitted')
    await model.received(2, 'planner')
    first.signal('SIGKILL')
    await first.exited

    const second = await processes.start({ ...task, waitFor: run_id })
    const done = await second.reported('done')
    const run = done.run as RunView
    const state = done.state as RuntimeState
    expect(run).toMatchObject({ id: run_id, status: 'completed', answer: 'It is 42.' })
    checkInvariants(state)
    expect(state.action_history[0]?.filter(({ node }) => node === 'calculate')).toHaveLength(1)
    expect(model.requests('planner')).toHaveLength(3)
    second.signal('SIGTERM')
    expect((await second.exited).code).toBe(0)
  })

  // `take-over` has the same on servers
  testInAll(
    'killed while a run waits goes on with it when it starts again, though the wait ended in between',
    async () => {
      await using model = await startFakeModel()
      say(model, { planner: [calling(['gate_wait', { waits: [{ ref: 'job' }] }]), { text: 'Done.' }] })
      const config = await openFolder()
      const task = { config, modelUrl: model.baseUrl }
      const first = await processes.start({ ...task, submit: { prompt: 'Wait', user_id: 'u1' } })
      const { run_id } = await first.reported('submitted')
      await first.reported('left', ({ left }) => left === 'parked')
      first.signal('SIGKILL')
      await first.exited

      const database = await openEmbeddedDatabase(config.database)
      await database.query(`SELECT end_wait('default', 'job', 'job', '{"status":"succeeded"}')`)
      await database.close()
      const second = await processes.start({ ...task, waitFor: run_id })
      const { run, state } = (await second.reported('done')) as { run: RunView; state: RuntimeState }
      expect(run).toMatchObject({ id: run_id, status: 'completed', answer: 'Done.' })
      checkInvariants(state)
      expect(state.action_history[0]?.filter(({ node }) => node === 'gate_wait')).toHaveLength(1)
      expect(model.requests('planner')).toHaveLength(2)
    },
  )
})
