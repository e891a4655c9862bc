import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import { dropKeys } from '../support/drop-keys.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'
import { inGate } from '../support/tier.ts'
import { openConsole } from './console.ts'
import { walk } from './walk.ts'

const { TEST_DATABASE_URL, TEST_REDIS_URL = '' } = process.env

describe.skipIf(!TEST_DATABASE_URL || !TEST_REDIS_URL)(
  'on real servers (needs TEST_DATABASE_URL and TEST_REDIS_URL)',
  () => {
    const name = `mason_console_${randomBytes(4).toString('hex')}`
    beforeAll(() => runAsAdmin(`CREATE DATABASE ${name}`))
    afterAll(() => Promise.all([dropDatabase(name), dropKeys(TEST_REDIS_URL, name)]))
    const env = () => ({
      ...{ DATABASE_URL: urlOf(name), REDIS_URL: TEST_REDIS_URL, MASON_QUEUE_PREFIX: name },
      MASON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    })
    // who may most and, in the second tier, who may least; all of them in proxies.test.ts
    const persons = ['operator', 'a developer'] as const
    const open = () => openConsole({ env: env() })
    walk('served', open, ['without a proxy'], inGate(1, persons))
  },
)
