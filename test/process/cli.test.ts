import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { jsonLines, type Running, runCli, startCli } from '../support/cli.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'
import { until } from '../support/runs.ts'
import { inGate, testInAll } from '../support/tier.ts'

const orders = join(import.meta.dirname, '..', '..', 'examples', 'data', 'orders.csv')

let root: string
let cwd: string
let model: FakeModel
let count = 0

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'mason-cli-'))
  model = await startFakeModel()
})
afterAll(async () => {
  await model.close()
  await rm(root, { recursive: true, force: true })
})
beforeEach(async () => {
  cwd = join(root, String(++count))
  await mkdir(cwd)
})
afterEach(() => model.reset())

/** Resolves once the model was asked; rejects when the process ends without. */
const asked = (running: Running): Promise<unknown> =>
  Promise.race([
    model.received(1),
    running.ended.then((end) => {
      throw new Error(`ended before it asked the model: ${JSON.stringify(end)}`)
    }),
  ])

const withModel = (): Record<string, string> => ({
  OPENAI_BASE_URL: model.baseUrl,
  OPENAI_MODEL: 'fake-model',
})

describe('the command line', () => {
  test('shows its commands and the exit codes', async () => {
    const { code, stdout } = await runCli(['--help'], { cwd })
    expect(code).toBe(0)
    for (const word of ['serve', 'worker', 'run', 'migrate', 'doctor', '130 cancelled'])
      expect(stdout).toContain(word)
  })

  test.concurrent.each([
    [['nope'], /unknown command/],
    [['run', 'x', '--file', 'nowhere.csv'], /nowhere\.csv does not exist/],
  ])('%j is a usage error: exit code 2', async (args, wanted) => {
    const { code, stdout, stderr } = await runCli(args, { cwd: root })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(wanted)
  })

  test('reports all invalid settings at once, with their remedies and without their secrets', async () => {
    const env = { DATABASE_URL: 'mysql://mason:hunter2@h/x', PORT: '-1', LOG_LEVEL: 'loud' }
    const { code, stderr } = await runCli(['serve'], { cwd, env })
    expect(code).toBe(2)
    expect(stderr).toContain('mason: 6 settings are wrong')
    for (const name of [
      'DATABASE_URL',
      'REDIS_URL',
      'PORT',
      'LOG_LEVEL',
      'MASON_MASTER_KEY',
      'MASON_ADMIN_TOKEN',
    ])
      expect(stderr).toMatch(new RegExp(`^  ${name} .*\n    -> .+`, 'm'))
    expect(stderr).not.toMatch(/hunter2|\n +at /)
  })

  test.each(inGate(1, [[['serve']], [['worker']], [['migrate']]]))(
    '%j says which database it cannot reach, and what to do',
    async (args) => {
      const env = {
        DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x',
        REDIS_URL: 'redis://127.0.0.1:1',
        MASON_MASTER_KEY: randomBytes(32).toString('base64'),
        MASON_AUTH: 'off',
      }
      const { code, stderr } = await runCli(args, { cwd, env })
      expect([code, stderr]).toEqual([
        1,
        'mason: PostgreSQL at 127.0.0.1:1/x cannot be used: connect ECONNREFUSED 127.0.0.1:1\n' +
          '  -> start PostgreSQL there, or correct the host and port in DATABASE_URL\n',
      ])
    },
  )
})

describe('mason run, embedded', () => {
  /** One folder for all of them. */
  beforeAll(async () => {
    const migrated = await runCli(['migrate'], { cwd: root })
    expect(migrated).toMatchObject({ code: 0, stdout: expect.stringContaining('up to date') })
  })
  beforeEach(() => {
    cwd = root
  })

  // the README does so, and a server below writes JSON
  testInAll('answers from a file with the offline model, one JSON object per event', async () => {
    const prompt = 'How many orders were returned?'
    const { code, stdout, stderr } = await runCli(['run', prompt, '--file', orders, '--json'], { cwd })
    expect([code, stderr]).toEqual([0, ''])
    const events = jsonLines(stdout)
    const ids = events.filter(({ event }) => event === 'action').map(({ data }) => data.id)
    expect(ids).toEqual(ids.map((_, index) => index + 1))
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    expect(String(events.at(-1)?.data.answer)).toContain('8')
  })

  test('fails with 1 and says why', async () => {
    model.script({ '*': [{ failure: { status: 401 } }] })
    const { code, stdout } = await runCli(['run', 'hello'], { cwd, env: withModel() })
    expect(code).toBe(1)
    expect(stdout).toMatch(/failed in planner: .*\(model_unauthorized\)/)
  })

  test('is cancelled by Ctrl-C with 130; meanwhile no other process gets its folder', async () => {
    model.script({ '*': [{ text: 'too late', hold: true }] })
    const running = startCli(['run', 'take your time'], { cwd, env: withModel() })
    await asked(running)
    const other = await runCli(['run', 'me too'], { cwd, env: withModel() })
    expect(other.code).toBe(1)
    expect(other.stderr).toContain(`.mason is in use by process ${running.pid}`)
    expect(other.stderr).toContain('--url')
    running.kill('SIGINT')
    expect(await running.ended).toMatchObject({
      code: 130,
      stdout: expect.stringMatching(/cancelling …[\s\S]*\ncancelled ·/),
    })
    await until('the model call is broken off', () => model.open() === 0)
  })

  testInAll('quits at once at the second Ctrl-C', async () => {
    model.script({ '*': [{ text: 'too late', hold: true }] })
    const running = startCli(['run', 'take your time'], { cwd, env: withModel() })
    await asked(running)
    running.kill('SIGINT')
    await running.says(/cancelling/)
    running.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130 })
  })

  test('doctor names what is wrong and how to fix it', async () => {
    expect(await runCli(['doctor'], { cwd })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/opens and is up to date[\s\S]*offline model[\s\S]*all is well/),
    })
    const env = {
      DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x',
      REDIS_URL: 'redis://127.0.0.1:1',
      MASON_MASTER_KEY: randomBytes(32).toString('base64'),
      MASON_AUTH: 'off',
      ...withModel(),
      OPENAI_MODEL: 'another-model',
    }
    const { code, stdout } = await runCli(['doctor'], { cwd, env })
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /ERROR {2}database {2}.*ECONNREFUSED[\s\S]*ERROR {2}queue[\s\S]*does not list the model/,
    )
    expect(stdout).not.toContain('hunter2')
  })
})

describe('mason serve, embedded', () => {
  const serve = () => startCli(['serve', '--port', '0'], { cwd, env: { LOG_LEVEL: 'error' } })

  test('makes a token and shows it once, serves a run, and stops with 0', async () => {
    const first = serve()
    const [, url = ''] = await first.says(/listens on (http:\S+)/)
    const [, token = ''] = await first.says(/shown only this once: (\S+)/)
    expect((await stat(join(cwd, '.mason', 'admin-token'))).mode & 0o777).toBe(0o600)
    const run = ['run', 'What is 12 * 22.75?', '--url', url]
    expect(await runCli(run, { cwd })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('MASON_TOKEN'),
    })
    const done = await runCli([...run, '--json'], { cwd, env: { MASON_TOKEN: token } })
    expect(done.code).toBe(0)
    expect(jsonLines(done.stdout).at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    first.kill('SIGTERM')
    expect(await first.ended).toMatchObject({ code: 0, stderr: '' })
  })

  testInAll('says at the next start where the token is, and shows it no more', async () => {
    const first = serve()
    await first.says(/listens on (http:\S+)/)
    const [, token = ''] = await first.says(/shown only this once: (\S+)/)
    first.kill('SIGTERM')
    expect(await first.ended).toMatchObject({ code: 0, stderr: '' })
    const second = serve()
    await second.says(/the admin token is in /)
    second.kill('SIGINT')
    expect((await second.ended).stdout).not.toContain(token)
  })

  testInAll('names the port that is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const port = String((other.address() as AddressInfo).port)
    const busy = await runCli(['serve', '--port', port, '--role', 'api'], { cwd })
    expect(busy).toMatchObject({ code: 1, stderr: expect.stringMatching(/cannot listen[\s\S]*--port/) })
    other.close()
  })
})
