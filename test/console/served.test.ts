import { afterAll, beforeAll, describe } from 'vitest'
import type { Backend } from '../support/backend.ts'
import { openOwnServers } from '../support/processes.ts'
import { urlOf } from '../support/setup-served.ts'
import { inGate } from '../support/tier.ts'
import { openConsole } from './console.ts'
import { walk } from './walk.ts'

const { TEST_DATABASE_URL, TEST_REDIS_URL = '' } = process.env

describe.skipIf(!TEST_DATABASE_URL || !TEST_REDIS_URL)(
  'on real servers (needs TEST_DATABASE_URL and TEST_REDIS_URL)',
  () => {
    let backend: Backend
    beforeAll(async () => {
      backend = await openOwnServers()
    })
    afterAll(() => backend?.drop())
    const env = () => ({
      ...{ DATABASE_URL: urlOf(backend.config.queuePrefix), REDIS_URL: TEST_REDIS_URL },
      MASON_QUEUE_PREFIX: backend.config.queuePrefix,
      MASON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    })
    // who may most and, in the second tier, who may least; all of them in proxies.test.ts
    const persons = ['operator', 'a developer'] as const
    const open = () => openConsole({ env: env() })
    walk('served', open, ['without a proxy'], inGate(1, persons))
  },
)
