// backends: either

import { fileURLToPath } from 'node:url'
import { afterAll, beforeEach, describe, expect } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import { dialogueExamples, repliesOf } from '../support/dialogue-examples.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'
import { deadline, fakeModels } from '../support/test-runtime.ts'
import { readAtif, readOpenAiExample } from '../support/trajectory-formats.ts'

/** How often workers lost their run, right after one of their actions was committed. */
let lost = 0
let isLosing = false

/**
 * A database in which a worker loses each run with every action that it commits, as one does that is killed right there: its epoch is
 * over before its next statement, and another claim goes on.
 */
const losing = (opened: Database): Database => ({
  ...opened,
  async query<Row>(text: string, values?: readonly unknown[]) {
    const done = await opened.query<Row>(text, values)
    // what the old worker sends after it was lost commits nothing, and must not cost the next one its lease
    if (!isLosing || !text.includes('INSERT INTO actions') || done.rows.length === 0) return done
    const taken = await opened.query(
      `UPDATE runs SET epoch = epoch + 1, lease_until = clock_timestamp() - interval '1 second'
       WHERE run_id = ANY($1) AND status = 'running' RETURNING run_id`,
      [(values ?? []).filter((value) => typeof value === 'string')],
    )
    lost += taken.rows.length
    return done
  },
})

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, ({ model }) => ({
  models: fakeModels(model.baseUrl, { dialect: 'xml' }),
  toolFolders: [fileURLToPath(new URL('../support/dialogue-tools', import.meta.url))],
  wrap: { database: losing },
}))

beforeEach(() => {
  lost = 0
})
afterAll(() => {
  isLosing = false
})

describe.each(Object.entries(dialogueExamples))(
  'the example of the requirement that goes %s',
  (_, example) => {
    test.for([
      ['comes out byte for byte', false],
      ['comes out byte for byte where its worker is lost after each of its commits', true],
    ] as const)('%s', async ([, loses], { model, runtime, server }) => {
      const replies = repliesOf(example)
      // by the replies that it has before it, since a worker that was lost may have asked already
      model.script(({ role, messages }) =>
        role === 'planner'
          ? { text: replies[messages.filter((one) => one.role === 'assistant').length] ?? 'no more' }
          : undefined,
      )
      const api = runtime.of('default')
      isLosing = loses
      const { run } = await api.submit({ prompt: 'Go on', user_id: 'u1' })
      const ended = await api.wait(run.id, deadline(50_000))
      isLosing = false
      expect(ended).toMatchObject({ status: 'completed', error: null })
      const path = `/v1/runs/${run.id}/trajectory?format=xml`
      const { text, headers } = await server.call('GET', path, { token: adminToken })
      expect(text).toBe(example)
      expect(headers.get('x-mason-trajectory')).toBe('written')
      const exported = async (format: string): Promise<string> =>
        (await server.call('GET', path.replace('xml', format), { token: adminToken })).text
      const calls = readAtif(await exported('atif')).steps.flatMap(({ tool_calls }) => tool_calls ?? [])
      const { messages } = readOpenAiExample(await exported('openai'))
      expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(calls.length)
      expect(calls.length).toBeGreaterThan(1)
      expect(lost > 5).toBe(loses)
    })
  },
)
