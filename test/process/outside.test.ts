import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'
import { openFolder } from '../support/file-samples.ts'
import { openOwnServers, serversMissing } from '../support/processes.ts'
import { calling, say } from '../support/script.ts'
import { isGate } from '../support/tier.ts'
import { onServers } from './servers.ts'

/**
 * A project outside this repository, from `mason init` to two workers. MASON_TEST_INSTALL=1 packs the package and installs it
 * (a minute, and npm's registry or cache); otherwise its build is linked.
 */
const isInstalled = process.env.MASON_TEST_INSTALL === '1'
const root = join(import.meta.dirname, '..', '..')
const timeoutMs = isInstalled ? 600_000 : 300_000

let folder: Awaited<ReturnType<typeof openFolder>>
let bin: string
let shop: string
let model: FakeModel
let modelSettings: Record<string, string>
const servers: Running[] = []

const npm = async (cwd: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)('npm', [...args, '--prefer-offline', '--no-audit'], { cwd })).stdout

beforeAll(async () => {
  folder = await openFolder()
  shop = join(folder.path, 'shop')
  model = await startFakeModel()
  modelSettings = { OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'fake' }
  if (isInstalled) {
    await npm(root, 'pack', '--pack-destination', folder.path)
    await npm(folder.path, 'init', '-y')
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    await npm(folder.path, 'install', `./mason-runtime-${version}.tgz`)
    bin = join(folder.path, 'node_modules', 'mason-runtime', 'dist', 'src', 'cli.js')
  } else {
    await mkdir(join(folder.path, 'node_modules'))
    await symlink(root, join(folder.path, 'node_modules', 'mason-runtime'))
    await symlink(join(root, 'node_modules', 'zod'), join(folder.path, 'node_modules', 'zod'))
    await writeFile(
      join(folder.path, 'package.json'),
      '{"dependencies": {"mason-runtime": "file:../own.tgz"}}',
    )
    bin = join(root, 'dist', 'src', 'cli.js')
  }
}, timeoutMs)
afterAll(async () => {
  for (const server of servers) server.kill('SIGTERM')
  await Promise.all(servers.map(({ ended }) => ended))
  await model?.close()
  await folder?.[Symbol.asyncDispose]()
})

const start = async (args: string[], ready: RegExp, env: Record<string, string>): Promise<string> => {
  const server = startCli(args, { cwd: shop, env: { ...modelSettings, ...env }, bin })
  servers.push(server)
  return (await server.says(ready))[1] ?? ''
}
const listens = /listens on (http:\S+)/
const refunds = (): Promise<number> =>
  readFile(join(shop, 'refunds.jsonl'), 'utf8').then(
    (text) => text.trim().split('\n').length,
    () => 0,
  )
const createApi = (url: string, token: string) => {
  const send = async (path: string, body?: object) => {
    const response = await fetch(`${url}/v1/runs${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return (await response.json()) as {
      id: string
      status: string
      answer: string
      input_request: { id: string }
    }
  }
  return {
    get: (id: string) => send(`/${id}`),
    ask: () => send('/wait', { prompt: 'Refund 12.50 for order 7', user_id: 'ann' }),
    agree: (run: { id: string; input_request: { id: string } }) =>
      send(`/${run.id}/input`, { request_id: run.input_request.id, answer: true }),
    isDone: (id: string) =>
      expect.poll(() => send(`/${id}`)).toMatchObject({ status: 'completed', answer: 'Refunded.' }),
  }
}
const scriptRefund = (last: { hold?: boolean } = {}): void =>
  say(model, {
    planner: [calling(['refund_order', { order_id: '7', amount: 12.5 }]), { text: 'Refunded.', ...last }],
  })

test(
  'mason init writes a project that its test passes in, asks npm for the same Mason, and overwrites nothing',
  async () => {
    const options = { cwd: folder.path, bin }
    const { stdout, code } = await runCli(['init', 'shop'], options)
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('cd shop\nnpm install\nnpm test\nnpx mason-runtime dev'),
    ])
    const { dependencies } = JSON.parse(await readFile(join(shop, 'package.json'), 'utf8'))
    expect(dependencies['mason-runtime']).toMatch(
      isInstalled ? /^file:\.\.\/mason-runtime-/ : /^file:\.\.\/\.\.\/own\.tgz$/,
    )
    if (isInstalled) await npm(shop, 'install')
    const tests = await promisify(execFile)(process.execPath, ['--test'], { cwd: shop })
    expect(tests.stdout).toMatch(/# pass 1\n# fail 0/)
    expect(await refunds()).toBe(0)
    const again = await runCli(['init', 'shop'], options)
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('nothing was written')])
    const compose = await readFile(join(shop, 'compose.yaml'), 'utf8')
    const known = `${await readFile(join(root, 'compose.yaml'), 'utf8')}${await readFile(join(root, 'Dockerfile'), 'utf8')}`
    for (const [, image = ''] of compose.matchAll(/image: (\S+)/g)) expect(known).toContain(image)
  },
  timeoutMs,
)

test(
  'mason init adds to a package.json of CommonJS, where its test passes too',
  async () => {
    const plain = join(folder.path, 'plain')
    await mkdir(plain)
    await writeFile(join(plain, 'package.json'), '{"dependencies": {"mason-runtime": "^0.1.0"}}')
    const { stdout } = await runCli(['init'], { cwd: plain, bin })
    expect(stdout).toMatch(/\n\nnpm install zod\nnode --test\nnpx mason-runtime dev\n$/)
    if (!isInstalled) return
    const tests = await promisify(execFile)(process.execPath, ['--test'], { cwd: plain })
    expect(tests.stdout).toMatch(/# pass 1\n# fail 0/)
  },
  timeoutMs,
)

test(
  'mason dev serves its tool: a question, one effect, and a run that goes on across a change of the tool',
  async () => {
    scriptRefund()
    const url = await start(['dev', '--port', '0'], listens, {})
    const token = (await readFile(join(shop, '.mason', 'admin-token'), 'utf8')).trim()
    const api = createApi(url, token)
    const first = await api.ask()
    expect(first).toMatchObject({
      status: 'input_required',
      input_request: { question: 'Refund 12.5 for order 7?' },
    })
    await api.agree(first)
    await api.isDone(first.id)
    expect(await refunds()).toBe(1)
    scriptRefund({ hold: true })
    const second = await api.ask()
    await api.agree(second)
    // its last call of a model is in progress when the tool changes
    await expect.poll(() => model.held()).toBe(1)
    // the next process may go on with the run before it says that it listens
    say(model, { planner: [{ text: 'Refunded.' }] })
    const tool = join(shop, 'tools', 'refund-order.tool.ts')
    await writeFile(tool, (await readFile(tool, 'utf8')).replace('Refunds an order', 'Pays an order back'))
    const [dev] = servers
    const restarted = await dev?.says(/listens on [\s\S]+listens on (http:\S+)/)
    const next = createApi(restarted?.[1] ?? '', token)
    await next.isDone(second.id)
    expect(await refunds()).toBe(2)
    expect(JSON.stringify(model.requests('planner').at(-1)?.tools)).toContain('Pays an order back')
  },
  timeoutMs,
)

// `payment-restart` has a worker, and an API, with tools of a folder
test.skipIf(serversMissing !== null || isGate)(
  onServers('two workers serve the tool, and a token of a business answers by mason runs'),
  async () => {
    const backend = await openOwnServers()
    try {
      const { database, redisUrl, queuePrefix } = backend.config
      const env = {
        DATABASE_URL: database.kind === 'postgres' ? database.url : '',
        REDIS_URL: redisUrl ?? '',
        MASON_QUEUE_PREFIX: queuePrefix,
        MASON_MASTER_KEY: randomBytes(32).toString('base64'),
        MASON_ADMIN_TOKEN: randomBytes(24).toString('hex'),
      }
      scriptRefund()
      const before = await refunds()
      const [url] = await Promise.all([
        start(['serve', '--role', 'api', '--port', '0'], listens, env),
        ...[1, 2].map(() => start(['worker'], /takes 256 runs at once/, env)),
      ])
      const options = { cwd: shop, bin, env: { MASON_URL: url } }
      const created = await runCli(
        ['tokens', 'create', '--business', 'shop', '--name', 'web', '--token', env.MASON_ADMIN_TOKEN],
        options,
      )
      const token = created.stdout.trim()
      const api = createApi(url, token)
      const asked = await api.ask()
      const answered = await runCli(['runs', 'answer', asked.id, 'true', '--token', token], options)
      expect(answered.stdout).toBe(`${asked.id} is answered and goes on\n`)
      await api.isDone(asked.id)
      expect(await refunds()).toBe(before + 1)
    } finally {
      for (const server of servers.splice(0)) {
        server.kill('SIGTERM')
        await server.ended
      }
      await backend.drop()
    }
  },
  timeoutMs,
)
