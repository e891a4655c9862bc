// backends: either

import { expect } from 'vitest'
import type { FakeReply } from '../../support/fake-model/types.ts'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'
import { calling, say } from '../../support/script.ts'
import { readAtif, readOpenAiExample } from '../../support/trajectory-formats.ts'

const long = 'line of a long file\n'.repeat(3000)
const replies: FakeReply[] = [
  // refused, then right
  calling(['no_such_tool', {}]),
  calling(
    ['update_todos', { todos: [{ id: 'sum', task: 'Add up' }] }],
    ['calculate', { expression: '6*7' }],
    ['calculate', { expression: '1/' }],
  ),
  calling(['read_file', { file_path: 'long.txt' }]),
  calling(['ask_user', { question: 'Which year?' }]),
]

test('a run of several turns, with a file, a refused and a failed call, a large result and an open question is exported by the rules of both formats', async ({
  database,
  model,
  runtime,
  server,
}) => {
  const read = async (id: string, format: string) => {
    const { status, text, headers } = await server.call('GET', `/v1/runs/${id}/trajectory?format=${format}`, {
      token: adminToken,
    })
    expect([status, headers.get('x-mason-trajectory')]).toEqual([200, 'rendered'])
    return { text, type: headers.get('content-type') }
  }
  const readBoth = async (id: string) => {
    const [openai, atif] = [await read(id, 'openai'), await read(id, 'atif')]
    expect([openai.type, atif.type]).toEqual([
      'application/jsonl; charset=utf-8',
      'application/json; charset=utf-8',
    ])
    return { example: readOpenAiExample(openai.text), atif: readAtif(atif.text) }
  }
  say(model, { planner: [{ text: 'Hello.' }] })
  const session_id = 'ses_exports'
  const first = await runtime.complete({ prompt: 'Hi', session_id })
  expect((await readBoth(first.id)).example.messages).toEqual([
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello.' },
  ])
  say(model, { planner: [...replies, { text: 'It was 2024.' }] })
  const files = [{ name: 'long.txt', content_base64: Buffer.from(long).toString('base64') }]
  const asked = await runtime.complete({ prompt: 'What of the file?', session_id, files })
  expect(asked.status).toBe('input_required')
  const open = await readBoth(asked.id)
  expect(open.example.messages.at(-1)).toMatchObject({ role: 'tool', content: '[no result]' })
  expect(open.atif.steps.at(-1)).toMatchObject({ source: 'agent', observation: { results: [] } })
  await runtime.of('default').answer(asked.id, asked.input_request?.id ?? '', '2024')
  const run = await runtime.of('default').wait(asked.id, AbortSignal.timeout(120_000))
  await database.query(
    `INSERT INTO usage_ledger (request_id, tenant, user_id, run_id, role, vendor_id, endpoint_id, model_id, model_name, upstream_name,
       status, prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens, cost_micro, currency, ms, visit_id)
     SELECT 'exported-' || n, 'default', 'u1', $1, 'planner', 'v', 'e', 'm', 'm', 'm', 'succeeded', 1, 1, 2, 0, 0, 100000, 'USD', 1, 'visit'
     FROM generate_series(1, 3) n`,
    [run.id],
  )
  const { example, atif } = await readBoth(run.id)
  expect(example).toMatchObject({
    ...{ run_id: run.id, status: 'completed', finish_reason: 'answered', usage: run.usage },
    todos: [{ id: 'sum' }],
    cost: [{ currency: 'USD', cost: 0.3 }],
  })
  const talk = example.messages.filter(({ role }) => role !== 'tool')
  expect(talk.map(({ role, content }) => [role, content])).toEqual([
    ['system', 'Files:\n- long.txt'],
    ...[
      ['user', 'Hi'],
      ['assistant', 'Hello.'],
    ],
    ['user', 'What of the file?'],
    ...[1, 2, 3].map(() => ['assistant', undefined]),
    ['assistant', 'It was 2024.'],
  ])
  const results = example.messages.flatMap((one) => (one.role === 'tool' ? [one.content] : []))
  expect(results[0]).toContain('42')
  expect(results.at(-1)).toBe('2024')
  // whole, although the state holds a reference
  expect(results.find((text) => text.includes('line of a long file'))?.length).toBeGreaterThan(30_000)
  expect(atif.final_metrics).toMatchObject({
    total_prompt_tokens: run.usage.prompt_tokens,
    total_cost_usd: 0.3,
  })
  const [refused] = atif.steps.flatMap(({ extra }) => (extra?.exchange ? [extra.exchange] : []))
  expect(JSON.stringify(refused)).toContain('no_such_tool')
})
