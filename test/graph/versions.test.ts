import { describe, expect, test } from 'vitest'
import { foldActions } from '../../src/state/fold.ts'
import { RunStoppedError } from '../../src/state/run-stop.ts'
import { checkInvariants } from '../support/invariants.ts'
import { memoryRun, planners, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

/** A run that stands at a call of a tool which only the newer of two versions has. */
const beginNew = async () => {
  const [older, newer] = await Promise.all([graphWith(), graphWith([callTool('novel', () => 'new things')])])
  const memory = memoryRun({ prompt: 'try it' })
  const models = planners(
    { tool_calls: [{ id: 'c0', name: 'novel', arguments: { n: 1 } }] },
    { text: 'Done.' },
  )
  await workOn(newer, memory, { models, diesAfter: 3 })
  expect(memory.rows.at(-1)?.body.next).toEqual(['novel'])
  return { older, newer, memory, models }
}

describe('a worker that does not know the next node of a run', () => {
  test('leaves the run to one that does, and appends nothing', async () => {
    const { older, newer, memory, models } = await beginNew()
    expect((await workOn(older, memory)).left).toBe('requeued')
    expect([memory.rows.length, memory.ended]).toEqual([3, null])
    expect((await workOn(newer, memory, { models })).left).toBe('ended')
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
    checkInvariants(foldActions(memory.rows))
  })

  test("fails the run with the node's name when no such worker has come", async () => {
    const { older, memory } = await beginNew()
    memory.passesOn = false
    expect((await workOn(older, memory)).left).toBe('ended')
    expect(memory.ended?.outcome).toMatchObject({ status: 'failed', reason: 'invalid_graph' })
    expect(JSON.stringify(memory.ended?.result.error)).toMatch(/"novel.*start workers of the version/)
    checkInvariants(foldActions(memory.rows))
  })

  test('ends the run as cancelled when a cancel was requested', async () => {
    const { older, memory } = await beginNew()
    const control = new AbortController()
    control.abort(new RunStoppedError({ kind: 'cancel', reason: 'enough' }))
    expect((await workOn(older, memory, { control })).left).toBe('ended')
    expect(memory.ended?.outcome).toEqual({ status: 'cancelled', reason: 'enough' })
  })
})
