import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { type Database, queryOne } from '../../src/infra/database/database.ts'
import type { RunView } from '../../src/state/run-view.ts'
import { unique } from '../support/backend.ts'
import type { FakeModel } from '../support/fake-model/fake-model.ts'
import { runtimeTest } from '../support/integration-test.ts'
import { rowOf, until } from '../support/runs.ts'
import { calling } from '../support/script.ts'
import { deadline, type TestRuntime } from '../support/test-runtime.ts'

const toolFolders = [fileURLToPath(new URL('../support/gate-tools', import.meta.url))]
const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { toolFolders })

let database: Database
let runtime: TestRuntime
let model: FakeModel
test.beforeAll(({ database: d, runtime: r, model: m }) => {
  ;[database, runtime, model] = [d, r, m]
})

const api = () => runtime.of('default')
const endWait = async (
  ref: string,
  kind = 'job',
  outcome: object = { status: 'succeeded' },
  tenant = 'default',
) =>
  (
    await queryOne<{ ended: number }>(database, 'SELECT end_wait($1, $2, $3, $4::json) AS ended', [
      tenant,
      kind,
      ref,
      JSON.stringify(outcome),
    ])
  )?.ended
const waitsOf = async (runId: string) =>
  (await database.query('SELECT * FROM waits WHERE run_id = $1 ORDER BY call_index, part', [runId])).rows

/** Runs whose planner makes these calls at once, and then finishes. */
const script = (...calls: [string, object][]): void => {
  model.reset()
  model.script({ planner: [calling(...calls), { text: 'Done.' }] } as never)
}
const start = async (...calls: [string, object][]): Promise<string> => {
  script(...calls)
  const { run } = await api().submit({ prompt: 'Go on', user_id: 'u1', session_id: unique('s') })
  return run.id
}
const untilParked = (runId: string, status = 'waiting') =>
  until(`run ${runId} is ${status}`, async () => (await rowOf(database, runId)).status === status)
const wait = (runId: string): Promise<RunView> => api().wait(runId, deadline())
const resultOf = async (runId: string) =>
  (await runtime.stateOf(runId)).action_history[0]?.find(({ node }) => node === 'gate_wait')?.result

test('a run whose call waits is a row and no process; its end brings the outcome to the call, which was started once', async () => {
  const ref = unique('job')
  const id = await start(['gate_wait', { waits: [{ ref }] }])
  await untilParked(id)
  expect(await rowOf(database, id)).toMatchObject({ lease_owner: null, lease_until: null, stalls: 0 })
  expect(await api().run(id)).toMatchObject({ status: 'running', ended_at: null, input_request: null })
  expect(await endWait(ref)).toBe(1)
  expect(await endWait(ref, 'job', { status: 'otherwise' })).toBe(0)
  expect(await wait(id)).toMatchObject({ status: 'completed', answer: 'Done.' })
  expect(await resultOf(id)).toMatchObject({ text: 'succeeded' })
  expect(await waitsOf(id)).toMatchObject([{ ref_id: ref, outcome: { status: 'succeeded' } }])
})
