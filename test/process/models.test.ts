import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'

const secret = 'sk-kingfisher-5b1c77e0'
const adminToken = 'admin-token-of-this-test-only'
let cwd: string
let model: FakeModel
/** One for all tests: a command on a data folder of its own opens a database each time. */
let server: Running
let url: string

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mason-models-'))
  model = await startFakeModel()
  server = startCli(['serve', '--port', '0'], {
    cwd,
    env: { LOG_LEVEL: 'error', MASON_ADMIN_TOKEN: adminToken, DATA_DIR: 'served' },
  })
  ;[, url = ''] = await server.says(/listens on (http:\S+)/)
})
afterAll(async () => {
  server.kill('SIGTERM')
  await server.ended
  await model.close()
  await rm(cwd, { recursive: true, force: true })
})
afterEach(() => model.reset())

const add = (...more: string[]): string[] => [
  ...['models', 'add', '--vendor', 'acme', '--base-url', model.baseUrl, '--name', 'quick'],
  ...more,
]

test('mason tokens create prints a token alone, and refuses one without a name or with an unknown role', async () => {
  const command = ['tokens', 'create', '--business', 'shop']
  const made = await runCli([...command, '--name', 'web'], { cwd })
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
  const added = await runCli(add(), { cwd, input: `${secret}\n` })
  expect([added.code, added.stderr]).toEqual([0, ''])
  model.script({ '*': [{ failure: { status: 401 } }] })
  const refused = await runCli(['models', 'test', 'quick'], { cwd })
  const doctor = await runCli(['doctor'], { cwd })
  expect([refused.code, doctor.code]).toEqual([1, 1])
  expect(doctor.stdout).toMatch(
    /ERROR +registry +key "default" of acme was refused[\s\S]*ERROR +registry +acme has 0 /,
  )
  for (const { stdout, stderr } of [added, refused, doctor]) expect(stdout + stderr).not.toContain(secret)
})
