import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openTestRuntime, scriptedModel } from 'mason-runtime/testing'

test('refund_order asks, and refunds once after a yes', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'refunds-'))
  context.after(() => rm(folder, { recursive: true }))
  const ledger = join(folder, 'refunds.jsonl')
  process.env.REFUNDS_FILE = ledger
  const models = scriptedModel({
    planner: [{ calls: [['refund_order', { order_id: '7', amount: 12.5 }]] }, 'Refunded.'],
  })
  const runtime = await openTestRuntime({ models })
  context.after(() => runtime.close())
  const asked = await runtime.complete({ prompt: 'Refund order 7' })
  assert.equal(asked.input_request?.question, 'Refund 12.5 for order 7?')
  const ended = await runtime.answer(asked, true)
  assert.deepEqual([ended.status, ended.answer], ['completed', 'Refunded.'])
  assert.equal((await readFile(ledger, 'utf8')).trim().split('\n').length, 1)
})
