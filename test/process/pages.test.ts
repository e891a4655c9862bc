import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { servedOn } from '../support/backend.ts'
import { dropKeys } from '../support/drop-keys.ts'
import { checkInvariants } from '../support/invariants.ts'
import { readPage } from '../support/pages.ts'
import { serversMissing } from '../support/processes.ts'
import { commandLine } from '../support/script-flags.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'
import { openTestRuntime } from '../support/test-runtime.ts'

/** Executes the blocks marked `sh run` of the guides as they are on the page. */

const root = join(import.meta.dirname, '..', '..')
let folder: string
let count = 0

const mason = (): string => [process.execPath, ...commandLine()].map((word) => `'${word}'`).join(' ')
/** `npx mason` is the command line of this repository; any other `npx` is the real one. */
const npx = (): string => `#!/usr/bin/env bash
if [ "$1" = mason ]; then shift; exec ${mason()} "$@"; fi
PATH=\${PATH#*:} exec npx "$@"
`

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mason-pages-'))
  await mkdir(join(folder, 'bin'))
  await writeFile(join(folder, 'bin', 'npx'), npx())
  await chmod(join(folder, 'bin', 'npx'), 0o755)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const makeFolder = async (): Promise<string> => {
  const cwd = join(folder, String(++count))
  await mkdir(cwd)
  return cwd
}

/** A copy of the repository that a page can change, with what is installed and built as it is after `npm ci`. */
const copyRepository = async (): Promise<string> => {
  const cwd = await makeFolder()
  const shared = ['node_modules', 'dist']
  const left = new Set(['.git', '.mason', ...shared])
  for (const name of await readdir(root))
    if (!left.has(name)) await cp(join(root, name), join(cwd, name), { recursive: true })
  for (const name of shared) await symlink(join(root, name), join(cwd, name))
  return cwd
}

/** Creates the page's files (`ts` blocks that begin with `// <path>`), then gives what its commands print, block by block. */
const execute = async (
  path: string,
  {
    cwd,
    env = {},
    only = () => true,
  }: { cwd: string; env?: Record<string, string>; only?(code: string): boolean },
): Promise<string[]> => {
  const { blocks } = await readPage(path)
  for (const { info, code } of blocks) {
    const [, file] = /^\/\/ (\S+)\n/.exec(code) ?? []
    if (info !== 'ts' || !file) continue
    await mkdir(dirname(join(cwd, file)), { recursive: true })
    await writeFile(join(cwd, file), code)
  }
  const commands = blocks.filter(({ info, code }) => info === 'sh run' && only(code)).map(({ code }) => code)
  expect(commands).not.toEqual([])
  const script = [
    'set -euo pipefail',
    // what a failed page started in the background ends with it
    'trap \'jobs=$(jobs -p); [ -z "$jobs" ] || kill -KILL $jobs\' EXIT',
    ...commands.flatMap((block) => [block, "printf '\\036'"]),
  ].join('\n')
  const { PATH = '', HOME = '' } = process.env
  const child = spawn('bash', ['-c', script], {
    cwd,
    env: { PATH: `${join(folder, 'bin')}:${PATH}`, HOME, CI: 'true', LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
    })
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject).once('close', resolve)
  })
  if (code !== 0) throw new Error(`${path} ended with ${code}:\n${written.stdout}\n${written.stderr}`)
  return written.stdout.split('\u001e').map((text) => text.trim())
}

const freePort = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(String(port)))
    })
  })

/** Guides compile the source, and start Mason several times. */
const guideMs = 300_000

describe('the guides', { timeout: guideMs }, () => {
  test('docs/write-a-tool.md creates a tool that its test accepts', async () => {
    const printed = await execute('docs/write-a-tool.md', { cwd: await copyRepository() })
    expect(printed[0]).toMatch(/1 passed[\s\S]*\| `count_words` \| call tool \|/)
  })

  test('docs/write-a-node.md creates a node that a run visits', async () => {
    const printed = await execute('docs/write-a-node.md', { cwd: await copyRepository() })
    expect(printed[0]).toMatch(/reflection_ --> tally_[\s\S]*tally .*\d+ actions so far, 0 with an error/)
  })

  test('README.md asks two questions about its file, and the offline model answers both', async () => {
    const cwd = await makeFolder()
    await cp(join(root, 'examples/data'), join(cwd, 'examples/data'), { recursive: true })
    const [answers] = await execute('README.md', { cwd })
    expect(answers).toMatch(/ Answered\n\n[^\n]*\b8\b[\s\S]* Answered\n\n[^\n]*\b2\b/)
  })

  test('of an embedded Mason are followed from the first run over an upgrade to a copy that continues it', async () => {
    const cwd = await makeFolder()
    const [turns, events = ''] = await execute('docs/concepts.md', { cwd })
    expect(turns).toMatch(/60[\s\S]*30/)
    const last = JSON.parse(events.split('\n').at(-1) ?? '')
    expect(last).toMatchObject({ event: 'done', data: { status: 'completed' } })

    const [upgraded] = await execute('docs/upgrade.md', { cwd, only: (code) => code.includes('cp -a') })
    expect(upgraded).toMatch(/up to date[\s\S]*all is well/)
    expect(await readdir(join(cwd, 'mason-before-upgrade'))).toContain('pgdata')

    const backup = { cwd, only: (code: string) => code.includes('mason-backup') }
    const [, restored] = await execute('docs/backup-and-restore.md', backup)
    expect(restored).toMatch(/all is well[\s\S]*60/)
  })
})

/** Why the guides for servers are skipped, or null. */
const missing =
  serversMissing ??
  (spawnSync('pg_dump', ['--version']).error ? 'install pg_dump, pg_restore and psql' : null)

describe.skipIf(missing !== null)(
  `the guides on servers${missing ? ` (skipped: ${missing})` : ''}`,
  { timeout: guideMs },
  () => {
    const names = ['a', 'b'].map((name) => `mason_pages_${name}_${randomBytes(4).toString('hex')}`)
    const [name = '', restored = ''] = names
    const settings = async () => ({
      DATABASE_URL: urlOf(name),
      NEW_DATABASE_URL: urlOf(restored),
      REDIS_URL: process.env.TEST_REDIS_URL ?? '',
      MASON_QUEUE_PREFIX: name,
      MASON_MASTER_KEY: randomBytes(32).toString('base64'),
      MASON_ADMIN_TOKEN: randomBytes(24).toString('hex'),
      PORT: await freePort(),
    })
    beforeAll(async () => {
      for (const each of names) await runAsAdmin(`CREATE DATABASE ${each}`)
    })
    afterAll(async () => {
      for (const each of names) await dropDatabase(each)
      await dropKeys(process.env.TEST_REDIS_URL ?? '', name)
    })

    test('are followed from deployment over an upgrade to a restored backup', async () => {
      const [cwd, env] = [await makeFolder(), await settings()]
      const programs = join(cwd, 'node_modules', '.bin')
      await mkdir(programs, { recursive: true })
      await writeFile(join(programs, 'mason'), `#!/usr/bin/env bash\nexec ${mason()} "$@"\n`, { mode: 0o755 })
      const deployed = await execute('docs/deploy.md', { cwd, env })
      expect(deployed[0]).toMatch(/applied 0001[\s\S]*all is well/)
      expect(JSON.parse(deployed[2] ?? '')).toMatchObject({
        status: 'completed',
        answer: expect.stringContaining('60'),
      })

      const served = (code: string) => !code.includes('cp -a')
      const [upgraded] = await execute('docs/upgrade.md', { cwd, env, only: served })
      expect(upgraded).toMatch(/nothing was missing[\s\S]*all is well/)

      const [dumped, , figures, open] = await execute('docs/backup-and-restore.md', {
        cwd,
        env,
        only: (code) => !code.includes('mason-backup'),
      })
      expect(dumped).toContain('TABLE DATA mason actions')
      const counts = figures?.match(/\d+ \| +\d+ \| +\d+/g) ?? []
      expect(counts).toEqual([expect.stringMatching(/^1 \| +1 \| +8$/), counts[0]])
      expect(figures).toMatch(/all is well/)
      expect(open).toBe('')

      const { config, ...copy } = servedOn(restored)
      const database = { kind: 'postgres' as const, url: urlOf(restored) }
      const own = { ...copy, config: { ...config, database, masterKey: env.MASON_MASTER_KEY } }
      const runtime = await openTestRuntime(own, { worker: false })
      try {
        const { data } = await runtime.of('shop').runs({ limit: 200 })
        expect(data).toHaveLength(1)
        for (const { id } of data) checkInvariants(await runtime.stateOf(id, 'shop'))
      } finally {
        await runtime.close()
        await dropKeys(env.REDIS_URL, restored)
      }
    })
  },
)
