import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'
import { calling, say } from '../support/script.ts'
import { testInAll } from '../support/tier.ts'

let cwd: string
let model: FakeModel
let server: Running

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mason-runs-'))
  model = await startFakeModel()
  server = startCli(['serve', '--port', '0'], {
    cwd,
    env: { OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'fake' },
  })
  await server.says(/http:\/\/127\.0\.0\.1:\d+/)
})
afterAll(async () => {
  server?.kill('SIGTERM')
  await server?.ended
  await model?.close()
  await rm(cwd, { recursive: true, force: true })
})

const runs = (...args: string[]) => runCli(['runs', ...args], { cwd })
/** Sends a request to the server as its admin. */
const call = async (method: string, path: string, json?: object): Promise<Response> => {
  const [url] = await server.says(/http:\/\/127\.0\.0\.1:\d+/)
  const [token] = await server.says(/mason_admin_[\w-]+/)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return fetch(url + path, { method, headers, ...(json && { body: JSON.stringify(json) }) })
}
/** Waits for a run until it has ended or asks, and gives its id. */
const submit = async (prompt: string): Promise<string> => {
  const response = await call('POST', '/v1/runs/wait', { prompt, user_id: 'ann' })
  return ((await response.json()) as { id: string }).id
}

test('mason runs finds the running server by its data folder, and lists, shows, answers, cancels and retries', async () => {
  expect((await runs('list')).stdout).toBe('no runs\n')

  say(model, {
    planner: [
      calling(['ask_user', { question: 'Which color?', options: ['red', 'blue'] }]),
      { text: 'Blue it is.' },
    ],
  })
  const asking = await submit('Paint it')
  const listed = await runs('list', '--status', 'input_required')
  expect(listed.stdout).toMatch(new RegExp(`^${asking} +input_required +ann .*Paint it$`, 'm'))
  expect((await runs('show', asking)).stdout).toContain('question:\nWhich color?\n  1) red\n  2) blue')
  const wrong = await runs('answer', asking, 'green')
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('does not fit the question')])
  expect((await runs('answer', asking, '2')).stdout).toBe(`${asking} is answered and goes on\n`)
  await call('GET', `/v1/runs/${asking}/events`).then((response) => response.text())
  expect((await runs('show', asking)).stdout).toContain('answer: Blue it is.')
  expect((await runs('logs', asking)).stdout).toMatch(/planner[\s\S]*ask_user[\s\S]*end/)
  expect((await runCli(['trajectory', asking], { cwd })).stdout).toMatch(
    /^<mason_server><ask_user>\{.*<\/ask_user><\/mason_server>\n<execute_tools \/>\n<result index="0">.*blue.*<\/result>\n<answer>Blue it is\.<\/answer>$/,
  )

  say(model, { planner: [calling(['ask_user', { question: 'Sure?' }])] })
  const cancelled = await submit('Ask me')
  expect((await runs('cancel', cancelled, '--reason', 'no need')).stdout).toBe(`${cancelled} is cancelled\n`)

  model.script(() => ({ failure: { status: 400 } }))
  const failed = await submit('Fail')
  expect((await runs('show', failed)).stdout).toMatch(/failed.*\n[\s\S]*error: model_/)
  model.reset()
  say(model, { planner: [{ text: 'Done now.' }] })
  const retried = /^(run_\w+) repeats/.exec((await runs('retry', failed)).stdout)?.[1] ?? 'none'
  const json = JSON.parse((await runs('show', retried, '--json')).stdout)
  expect(json).toMatchObject({ id: retried, retry_of: failed, turn: 2 })
})

testInAll('mason runs refuses what the status of a run does not allow', async () => {
  say(model, { planner: [{ text: 'Done.' }] })
  const refused = await runs('retry', await submit('Do it'))
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('failed')])
  say(model, { planner: [calling(['ask_user', { question: 'Sure?' }])] })
  const cancelled = await submit('Ask me')
  expect((await runs('cancel', cancelled)).stdout).toBe(`${cancelled} is cancelled\n`)
  const gone = await runs('answer', cancelled, 'yes')
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('no open question')])
})

test('mason webhooks lists what became of them, and sends one again under its id', async () => {
  const ids: unknown[] = []
  const receiver = createServer((request, response) => {
    ids.push(request.headers['webhook-id'])
    response.writeHead(ids.length === 1 ? 410 : 204).end()
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  await call('PATCH', '/admin/v1/businesses/default/webhook', { allow_private: true })
  say(model, { planner: [{ text: 'Done.' }] })
  const webhook_url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  await call('POST', '/v1/runs/wait', { prompt: 'Tell me', user_id: 'ann', webhook_url })
  const webhooks = (...args: string[]) => runCli(['webhooks', ...args], { cwd })
  await expect.poll(async () => (await webhooks('list', '--status', 'dead')).stdout).toMatch(/410 Gone/)
  const [id] = /^msg_\w+/m.exec((await webhooks('list')).stdout) ?? ['none']
  expect((await webhooks('replay', id)).stdout).toBe(`${id} will be sent again\n`)
  await expect.poll(() => ids).toEqual([id, id])
  const missing = await webhooks('replay', 'msg_none')
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('msg_none')])
  receiver.close()
})

test('mason run is served by the running server', async () => {
  const [url] = await server.says(/http:\/\/127\.0\.0\.1:\d+/)
  say(model, { planner: [{ text: 'Served.' }] })
  const ran = await runCli(['run', 'Who serves me?'], { cwd })
  expect([ran.code, ran.stderr]).toEqual([0, ''])
  expect(ran.stdout).toContain('Served.')
  const id = /run (run_\w+)/.exec(ran.stdout)?.[1] ?? 'none'
  expect((await runs('show', id)).stdout).toContain('Served.')
  expect(url).toBeTruthy()
})

test('mason run ends with 3 when it asks a question without a terminal', async () => {
  const args = { question: 'Which year?', options: ['2024', '2025'] }
  say(model, { planner: [calling(['ask_user', args])] })
  const { code, stdout } = await runCli(['run', 'sum it up'], { cwd })
  expect(code).toBe(3)
  expect(stdout).toMatch(/Which year\?\n1\) 2024\n2\) 2025\nto answer: .*\/v1\/runs\/run_/)
})

const effects = (...args: string[]) => runCli(['effects', ...args], { cwd })
/** A run that waits for an operator, since the shop hangs up on its order; and the effect that is unknown. */
const orderUnknown = async () => {
  const receiver = createServer((request) => request.destroy()).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const shop = `127.0.0.1:${(receiver.address() as AddressInfo).port}`
  await call('PATCH', '/admin/v1/businesses/default', { http_hosts: [{ host: shop, allow_private: true }] })
  const order = { method: 'POST', url: `http://${shop}/orders`, body: 'x' }
  say(model, { planner: [calling(['http_request', order]), { text: 'Ordered.' }] })
  const submitted = await call('POST', '/v1/runs', { prompt: 'Order one', user_id: 'ann' })
  const { id } = (await submitted.json()) as { id: string }
  const read = async () =>
    (await call('GET', `/v1/runs/${id}`)).json() as Promise<{ operator_request: unknown }>
  await expect.poll(async () => (await read()).operator_request).toBeTruthy()
  expect((await effects()).stdout).toContain(id)
  const [effect] = /^[0-9a-f]{64}/m.exec((await effects('list')).stdout) ?? ['none']
  receiver.close()
  return { id, effect }
}

test('mason effects lists what is unknown, and settles it', async () => {
  expect((await effects()).stdout).toBe('no side effects\n')
  const { id, effect } = await orderUnknown()
  const { code, stderr } = await effects('resolve', effect)
  expect([code, stderr]).toEqual([2, expect.stringContaining('--took-place')])
  const settled = await effects('resolve', effect, '--took-place', 'yes')
  expect(settled.stdout).toBe(`${effect} is succeeded; run ${id} goes on unless it has ended\n`)
  await call('GET', `/v1/runs/${id}/events`).then((response) => response.text())
  expect((await runs('show', id)).stdout).toContain('answer: Ordered.')
})

testInAll('mason effects settles nothing twice', async () => {
  const { effect } = await orderUnknown()
  expect((await effects('resolve', effect, '--took-place', 'yes')).code).toBe(0)
  const again = await effects('resolve', effect, '--took-place', 'no')
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('settled before')])
})

test('mason runs says what is wrong with a run that is not there', async () => {
  const { code, stderr } = await runs('show', 'run_none')
  expect([code, stderr]).toEqual([1, expect.stringContaining('run_none')])
})
