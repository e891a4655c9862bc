// backends: both
// asserts: invariants

import { afterAll, describe, expect } from 'vitest'
import type { Database } from '../../../src/infra/database/database.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { count, unavailable } from '../../support/runs.ts'
import { deadline, nodesOf } from '../../support/test-runtime.ts'

let fails = false
let failed = 0

/** Every seventh statement of the worker is lost, in turn before it is done and after. */
const unsteady = (opened: Database): Database => {
  let statements = 0
  return {
    ...opened,
    async query<Row>(text: string, values?: readonly unknown[]) {
      const nth = ++statements
      const lost = fails && nth % 7 === 0
      if (lost) failed++
      if (lost && nth % 2) throw unavailable()
      const done = await opened.query<Row>(text, values)
      if (lost) throw unavailable()
      return done
    },
  }
}

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  leaseMs: 900,
  worker: false,
  wrap: { database: unsteady },
}))
afterAll(async () => {
  fails = false
})

describe('a database that loses one statement in seven', () => {
  test('costs no run, no action and no call of the model', async ({ model, runtime, database }) => {
    const big = { name: 'calculate', arguments: { expression: '2^0.5' } }
    // distinguished by the results in the prompt, since many runs call at once
    model.script((request) => {
      if (request.role !== 'planner') return undefined
      const results = request.messages.filter(({ role }) => role === 'tool')
      return JSON.stringify(results).includes('1.4142')
        ? { text: 'About one and a half.' }
        : { tool_calls: [big, { ...big, arguments: { expression: '1+1' } }] }
    })
    const api = runtime.of('default')
    const runs: string[] = []
    for (let at = 0; at < 6; at++)
      runs.push(
        (await api.submit({ prompt: `${at}`, user_id: 'u1', ...(at % 2 && { session_id: 's' }) })).run.id,
      )
    fails = true
    await runtime.startWorker({ concurrency: 4 })
    for (const id of runs)
      expect(await api.wait(id, deadline())).toMatchObject({
        status: 'completed',
        answer: 'About one and a half.',
      })
    fails = false
    expect(failed).toBeGreaterThan(10)
    for (const id of runs) {
      const state = await runtime.stateOf(id)
      checkInvariants(state)
      expect(nodesOf(state).filter((node) => node === 'calculate')).toHaveLength(2)
      expect(nodesOf(state).filter((node) => node === 'planner')).toHaveLength(2)
    }
    expect(await count(database, 'runs WHERE stalls > 0')).toBe(0)
  })
})
