// tier: all
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { dropKeys } from '../support/drop-keys.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'

const script = 'examples/served-demo.ts'

test('the served demo says what it needs', async () => {
  const { code, stderr } = await runCli([], { cwd: tmpdir(), script })
  expect([code, stderr]).toEqual([2, expect.stringContaining('needs DATABASE_URL and REDIS_URL')])
})

describe.skipIf(!process.env.TEST_DATABASE_URL || !process.env.TEST_REDIS_URL)(
  'on real servers (needs TEST_DATABASE_URL and TEST_REDIS_URL)',
  () => {
    const name = `mason_demo_${randomBytes(4).toString('hex')}`
    beforeAll(() => runAsAdmin(`CREATE DATABASE ${name}`))
    afterAll(() => Promise.all([dropDatabase(name), dropKeys(process.env.TEST_REDIS_URL ?? '', name)]))

    test('a worker is killed in the middle of a run, and the other one finishes it', async () => {
      const env = {
        DATABASE_URL: urlOf(name),
        REDIS_URL: process.env.TEST_REDIS_URL ?? '',
        MASON_QUEUE_PREFIX: name,
      }
      const { code, stdout } = await runCli([], { cwd: tmpdir(), env, script })
      expect(stdout).toMatch(
        /South.*5,889\.7[\s\S]*worker [AB] did actions 1 to \d+, worker [AB] did .*none twice/,
      )
      expect(code).toBe(0)
    })
  },
)
