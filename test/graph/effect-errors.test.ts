import { expect, test } from 'vitest'
import { memoryRun, planners, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

test('a tool that fails after its side effect tells the model that it took place', async () => {
  const pays = callTool(
    'pays',
    async (_args, context) => {
      await context.effect({ class: 'manual', request: 'pay 5', send: async () => '' })
      throw new Error('this is no receipt')
    },
    false,
  )
  const memory = memoryRun({ prompt: 'pay' })
  memory.effect = { effect_id: 'e1', response: 'paid under 7' }
  const models = planners({ tool_calls: [{ id: 'c0', name: 'pays', arguments: {} }] }, { text: 'Done.' })
  await workOn(await graphWith([pays]), memory, { models })
  const result = memory.rows.find(({ body }) => body.node === 'pays')?.body.result
  expect(result).toMatchObject({ is_error: true })
  expect(result?.text).toMatch(/^Error: this is no receipt\nThe side effect took place.*paid under 7$/)
  const shown = models.requests.findLast(({ role }) => role === 'planner')?.messages
  expect(JSON.stringify(shown)).toContain('do not repeat it')
})
