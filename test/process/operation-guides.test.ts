// tier: all

import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../examples/free-port.ts'
import { servedOn } from '../support/backend.ts'
import { dropKeys } from '../support/drop-keys.ts'
import { checkInvariants } from '../support/invariants.ts'
import { serversMissing } from '../support/processes.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'
import { openTestRuntime } from '../support/test-runtime.ts'
import { execute, makeFolder, mason } from './page-commands.ts'

/** Guides start Mason several times. */
const guideMs = 300_000

describe('the guides', { timeout: guideMs }, () => {
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
      PORT: String(await freePort()),
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
      expect(deployed[0]).toMatch(/applied \w+\.sql[\s\S]*all is well/)
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
