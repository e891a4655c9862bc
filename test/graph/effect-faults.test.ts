import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/graph/tool.ts'
import { memoryRun, planners, workOn } from '../support/memory-run.ts'
import { graphWith } from '../support/parts.ts'

test('a tool that fails after its side effect tells the model that it took place', async () => {
  const pays = defineTool({
    name: 'pays',
    description: 'Pays, and stumbles over the receipt',
    kinds: ['call'],
    input: z.record(z.string(), z.json()),
    reads: [],
    writes: [],
    async run(_state, context) {
      await context.effect({ class: 'manual', request: 'pay 5', send: async () => '' })
      throw new Error('this is no receipt')
    },
  })
  const memory = memoryRun({ prompt: 'pay' })
  memory.effect = { effect_id: 'e1', response: 'paid under 7' }
  const models = planners({ tool_calls: [{ id: 'c0', name: 'pays', arguments: {} }] }, { text: 'Done.' })
  await workOn(await graphWith([pays]), memory, { models })
  const laid = memory.rows.find(({ body }) => body.node === 'pays')?.body.result
  expect(laid).toMatchObject({ is_error: true })
  expect(laid?.text).toMatch(/^Error: this is no receipt\nThe side effect took place.*paid under 7$/)
  const shown = models.requests.findLast(({ role }) => role === 'planner')?.messages
  expect(JSON.stringify(shown)).toContain('do not repeat it')
})
