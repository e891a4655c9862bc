import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Config } from '../../src/infra/config/config.ts'
import type { RunView } from '../../src/state/run-view.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { baseConfig } from '../support/backend.ts'
import { startFakeModel } from '../support/fake-model/fake-model.ts'
import { checkInvariants } from '../support/invariants.ts'
import { createProcesses } from '../support/processes.ts'
import { calling, say } from '../support/script.ts'

const processes = createProcesses()
const folders: string[] = []
afterEach(async () => {
  await processes.end()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

describe('the embedded runtime', () => {
  test('killed in the middle of a run and started again on the same folder finishes it', async () => {
    await using model = await startFakeModel()
    const step = calling(['calculate', { expression: '6*7' }])
    say(model, { planner: [step, { hold: true, text: 'lost' }, { text: 'It is 42.' }] })
    const dataDir = await mkdtemp(join(tmpdir(), 'mason-embedded-'))
    folders.push(dataDir)
    const config: Config = { ...baseConfig, database: { kind: 'embedded', dataDir }, redisUrl: null }
    const task = { config, modelUrl: model.baseUrl }
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
})
