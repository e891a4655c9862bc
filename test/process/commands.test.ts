import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { askDoctor } from '../support/doctor.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'
import { callUrl } from '../support/http.ts'
import { calling, say } from '../support/script.ts'
import { testInAll } from '../support/tier.ts'

/** One server for all commands: one on a data folder of its own opens a database each time. */

const secret = 'sk-kingfisher-5b1c77e0'
let cwd: string
let model: FakeModel
let server: Running
let url: string
let adminToken: string

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mason-commands-'))
  model = await startFakeModel()
  server = startCli(['serve', '--port', '0'], {
    cwd,
    env: { OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'fake' },
  })
  const [, first = '', page = ''] = await server.says(/listens on (http:\S+)[\s\S]+console\s+(http:\S+)/)
  expect(page).toBe(`${first}/console`)
  url = first
  ;[adminToken = ''] = await server.says(/mason_admin_[\w-]+/)
})
afterEach(() => model.reset())
afterAll(async () => {
  server?.kill('SIGTERM')
  await server?.ended
  await model?.close()
  await rm(cwd, { recursive: true, force: true })
})

const runs = (...args: string[]) => runCli(['runs', ...args], { cwd })
/** Sends a request to the server as its admin. */
const call = async (method: string, path: string, json?: object): Promise<Response> => {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
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
  say(model, { planner: [{ text: 'Served.' }] })
  const ran = await runCli(['run', 'Who serves me?'], { cwd })
  expect([ran.code, ran.stderr]).toEqual([0, ''])
  expect(ran.stdout).toContain('Served.')
  const id = /run (run_\w+)/.exec(ran.stdout)?.[1] ?? 'none'
  expect(await call('GET', `/v1/runs/${id}`).then((response) => response.text())).toContain('Served.')
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
  const { stdout } = await effects('list')
  expect(stdout).toContain(id)
  const [effect] = /^[0-9a-f]{64}/m.exec(stdout) ?? ['none']
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
  expect(await call('GET', `/v1/runs/${id}/events`).then((response) => response.text())).toContain('Ordered.')
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

test('mason console prints the address of the server on this data folder, which signs in once', async () => {
  const { code, stdout, stderr } = await runCli(['console'], { cwd })
  expect([code, stderr]).toEqual([0, expect.stringContaining('signs in once, within a minute')])
  const [, page, secret] = /^(\S+)\/console#code=([\w-]{43})\n$/.exec(stdout) ?? []
  expect(page).toBe(url)
  const exchange = () =>
    callUrl(`${url}/console/session`, 'POST', {
      ...{ json: { code: secret }, headers: { 'sec-fetch-site': 'same-origin' } },
    })
  expect((await exchange()).body).toMatchObject({ signed_in: true, admin: true })
  expect((await exchange()).status).toBe(401)
})

test('mason console prints the address that was named, or the public one, and refuses a token that is none', async () => {
  const target = ['console', '--url', url, '--token']
  const refused = await runCli([...target, 'wrong'], { cwd })
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([
    1,
    '',
    expect.stringMatching(/unknown[\s\S]+-> /),
  ])
  const { stdout: token } = await runCli(['tokens', 'create', '--name', 'Ann', '--role', 'read'], { cwd })
  const named = await runCli([...target, token.trim()], { cwd })
  expect([named.code, named.stdout.startsWith(`${url}/console#code=`)]).toEqual([0, true])
  const env = { MASON_PUBLIC_URL: 'https://example.com/mason' }
  const { code, stdout } = await runCli(['console'], { cwd, env })
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^https:\/\/example\.com\/mason\/console#code=[\w-]{43}\n$/),
  ])
})

test('mason console says how to start a server where none runs', async () => {
  const { code, stderr } = await runCli(['console'], { cwd, env: { DATA_DIR: 'other' } })
  expect([code, stderr]).toEqual([1, expect.stringMatching(/no server is running[\s\S]+-> start `.*serve`/)])
})

/** On a data folder that no server has. */
const alone = () => ({ cwd, env: { DATA_DIR: 'alone' } })

const add = (...more: string[]): string[] => [
  ...['models', 'add', '--vendor', 'acme', '--base-url', model.baseUrl, '--name', 'quick'],
  ...more,
]

test('mason tokens create prints a token alone, and refuses one without a name or with an unknown role', async () => {
  const command = ['tokens', 'create', '--business', 'shop']
  const made = await runCli([...command, '--name', 'web'], alone())
  expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^mason_[\w-]{43}\n$/)])
  expect(made.stderr).toMatch(/^tok_\w+ may submit and read for shop; .*only this once\n$/)
  expect(made.stderr).not.toContain(made.stdout.trim())
  const create = (...more: string[]) => masonModels([...command, ...more])
  expect((await create()).code).toBe(2)
  expect((await create('--name', 'web', '--operator', 'Ann')).code).toBe(2)
  const operator = await create('--operator', 'Ann')
  expect([operator.code, operator.stdout]).toEqual([0, expect.stringMatching(/^mason_op_[\w-]{43}\n$/)])
  expect(operator.stderr).toMatch(/^opr_\w+ is the admin token of Ann; .*only this once\n$/)
  const wrong = await create('--name', 'web', '--role', 'boss')
  expect([wrong.code, wrong.stdout]).toEqual([2, ''])
  expect(wrong.stderr).toContain('roles')
})

/** A command against the server, as its admin. */
const masonModels = (args: readonly string[], input?: string) =>
  runCli([...args, '--url', url], {
    cwd,
    env: { MASON_TOKEN: adminToken, ACME_KEY: secret },
    ...(input !== undefined && { input }),
  })

test('mason models adds a model in one command, lists it, tests it, and shows its key nowhere', async () => {
  const stranger = await runCli(['models', 'list', '--url', url, '--token', 'nope'], { cwd })
  expect([stranger.code, stranger.stderr]).toEqual([1, expect.stringContaining('admin token')])
  const wrong = await masonModels(add('--key-env', secret))
  expect([wrong.code, wrong.stdout]).toEqual([2, ''])
  const empty = await masonModels(add(), '')
  expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('--key-env NAME')])

  // the category is wrong, so the model is refused after the rest was made
  const half = await masonModels(add('--category', 'nonsense'), `${secret}\n`)
  expect(half.code).toBe(2)
  expect(half.stdout).toMatch(
    /stopped; these were created and stay: vendor "acme", key .*, endpoint "openai"/,
  )
  const added = await masonModels(add('--role', 'planner', '--key-env', 'ACME_KEY'))
  expect([added.code, added.stderr]).toEqual([0, ''])
  expect(added.stdout).toMatch(
    /exists +vendor[\s\S]*exists +key[\s\S]*exists +endpoint[\s\S]*created +model[\s\S]*created +route/,
  )

  const listed = await masonModels(['models', 'list'])
  expect(listed.stdout).toMatch(/^quick +acme +text +.*planner.* 1 healthy$/m)
  const json = await masonModels(['models', 'list', '--json'])
  const { models } = JSON.parse(json.stdout) as { models: { name: string }[] }
  expect(models.find(({ name }) => name === 'quick')).toMatchObject({
    vendor: 'acme',
    routes: expect.arrayContaining(['planner']),
    keys: [{ health: 'healthy' }],
  })

  model.script({ '*': [{ text: 'OK' }] })
  const tried = await masonModels(['models', 'test', 'quick'])
  expect([tried.code, tried.stderr]).toEqual([0, ''])
  expect(tried.stdout).toMatch(/^raw[\s\S]*^parsed[\s\S]*"text": "OK"[\s\S]*10 \+ 5 tokens[\s\S]*\d ms/m)

  model.script({ '*': [{ failure: { status: 401 } }] })
  const refused = await masonModels(['models', 'test', 'quick'])
  expect(refused.stdout).toMatch(/ERROR .*model_unauthorized[\s\S]*-> .*rotate/)
  const sick = await masonModels(['models', 'list'])
  expect(sick.stdout).toMatch(/^quick .* 1 disabled$/m)
  expect((await masonModels(['models', 'test', 'unknown'])).code).toBe(2)

  for (const { stdout, stderr } of [wrong, half, added, listed, json, tried, refused, sick])
    expect(stdout + stderr).not.toContain(secret)
})

test('mason models works on a data folder too, whose doctor says what is wrong with a key', async () => {
  const added = await runCli(add(), { ...alone(), input: `${secret}\n` })
  expect([added.code, added.stderr]).toEqual([0, ''])
  model.script({ '*': [{ failure: { status: 401 } }] })
  const refused = await runCli(['models', 'test', 'quick'], alone())
  const doctor = await askDoctor({ DATA_DIR: join(cwd, 'alone') })
  expect([refused.code, doctor.code]).toEqual([1, 1])
  expect(doctor.stdout).toMatch(
    /ERROR +registry +key "default" of acme was refused[\s\S]*ERROR +registry +acme has 0 /,
  )
  for (const { stdout, stderr } of [added, refused, { ...doctor, stderr: '' }])
    expect(stdout + stderr).not.toContain(secret)
})
