import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { runCli, startCli } from '../support/cli.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'

const secret = 'sk-kingfisher-5b1c77e0'
let cwd: string
let model: FakeModel

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mason-models-'))
  model = await startFakeModel()
})
afterAll(async () => {
  await model.close()
  await rm(cwd, { recursive: true, force: true })
})
afterEach(() => model.reset())

const add = (...more: string[]): string[] => [
  ...['models', 'add', '--vendor', 'acme', '--base-url', model.baseUrl, '--name', 'quick'],
  ...more,
]

test('mason tokens create prints a token alone, and refuses one without a name or with an unknown role', async () => {
  const create = (...more: string[]) => runCli(['tokens', 'create', '--business', 'shop', ...more], { cwd })
  const made = await create('--name', 'web')
  expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^mason_[\w-]{43}\n$/)])
  expect(made.stderr).toMatch(/^tok_\w+ may submit and read for shop; .*only this once\n$/)
  expect(made.stderr).not.toContain(made.stdout.trim())
  expect((await create()).code).toBe(2)
  expect((await create('--name', 'web', '--operator', 'Ann')).code).toBe(2)
  const operator = await create('--operator', 'Ann')
  expect([operator.code, operator.stdout]).toEqual([0, expect.stringMatching(/^mason_op_[\w-]{43}\n$/)])
  expect(operator.stderr).toMatch(/^opr_\w+ is the admin token of Ann; .*only this once\n$/)
  const wrong = await create('--name', 'web', '--role', 'boss')
  expect([wrong.code, wrong.stdout]).toEqual([1, ''])
  expect(wrong.stderr).toContain('roles')
})

test('mason models adds a model in one command, lists it, tests it, and shows its key nowhere', async () => {
  const wrong = await runCli(add('--key-env', secret), { cwd })
  expect([wrong.code, wrong.stdout]).toEqual([2, ''])
  const empty = await runCli(add(), { cwd, input: '' })
  expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('--key-env NAME')])

  // the category is wrong, so the model is refused after the rest was made
  const half = await runCli(add('--category', 'nonsense'), { cwd, input: `${secret}\n` })
  expect(half.code).toBe(1)
  expect(half.stdout).toMatch(
    /stopped; these were created and stay: vendor "acme", key .*, endpoint "openai"/,
  )
  const added = await runCli(add('--role', 'planner'), { cwd, input: `${secret}\n` })
  expect([added.code, added.stderr]).toEqual([0, ''])
  expect(added.stdout).toMatch(
    /exists +vendor[\s\S]*exists +key[\s\S]*exists +endpoint[\s\S]*created +model[\s\S]*created +route/,
  )
  expect((await runCli(add('--no-key'), { cwd })).code).toBe(2)

  const listed = await runCli(['models', 'list'], { cwd })
  expect(listed.stdout).toMatch(/^quick +acme +text +.*planner.* 1 healthy$/m)
  const json = await runCli(['models', 'list', '--json'], { cwd })
  const { models } = JSON.parse(json.stdout) as { models: { name: string }[] }
  expect(models.find(({ name }) => name === 'quick')).toMatchObject({
    vendor: 'acme',
    routes: expect.arrayContaining(['planner']),
    keys: [{ health: 'healthy' }],
  })

  model.script({ '*': [{ text: 'OK' }] })
  const tried = await runCli(['models', 'test', 'quick'], { cwd })
  expect([tried.code, tried.stderr]).toEqual([0, ''])
  expect(tried.stdout).toMatch(/^raw[\s\S]*^parsed[\s\S]*"text": "OK"[\s\S]*10 \+ 5 tokens[\s\S]*\d ms/m)

  model.script({ '*': [{ fault: { status: 401 } }] })
  const refused = await runCli(['models', 'test', 'quick'], { cwd })
  expect(refused.code).toBe(1)
  expect(refused.stdout).toMatch(/ERROR .*model_unauthorized[\s\S]*-> .*rotate/)
  const sick = await runCli(['models', 'list'], { cwd })
  expect(sick.stdout).toMatch(/^quick .* 1 disabled$/m)
  expect((await runCli(['models', 'test', 'nobody'], { cwd })).code).toBe(2)
  const doctor = await runCli(['doctor'], { cwd })
  expect(doctor.code).toBe(1)
  expect(doctor.stdout).toMatch(
    /ERROR +registry +key "default" of acme was refused[\s\S]*ERROR +registry +acme has 0 /,
  )

  for (const { stdout, stderr } of [wrong, half, added, listed, json, tried, refused, sick, doctor])
    expect(stdout + stderr).not.toContain(secret)
}, 300_000)

test('mason models does the same against a server, with the admin token only', async () => {
  const server = startCli(['serve', '--port', '0'], {
    cwd,
    env: { LOG_LEVEL: 'error', MASON_ADMIN_TOKEN: 'admin-token-of-this-test-only', DATA_DIR: 'served' },
  })
  try {
    const [, url = ''] = await server.says(/listens on (http:\S+)/)
    const target = ['--url', url]
    const stranger = await runCli(['models', 'list', ...target, '--token', 'nope'], { cwd })
    expect([stranger.code, stranger.stderr]).toEqual([1, expect.stringContaining('admin token')])
    const env = { MASON_TOKEN: 'admin-token-of-this-test-only', ACME_KEY: secret }
    const added = await runCli(add('--key-env', 'ACME_KEY', ...target), { cwd, env })
    expect([added.code, added.stderr]).toEqual([0, ''])
    model.script({ '*': [{ text: 'OK' }] })
    const tried = await runCli(['models', 'test', 'quick', ...target], { cwd, env })
    expect(tried.code).toBe(0)
    for (const { stdout, stderr } of [added, tried]) expect(stdout + stderr).not.toContain(secret)
  } finally {
    server.kill('SIGTERM')
    await server.ended
  }
}, 300_000)
