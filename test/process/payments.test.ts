// asserts: invariants

import { describe, expect, onTestFinished, test } from 'vitest'
import { payMany } from '../../chaos/payments/campaign.ts'
import { invariant } from '../support/invariants.ts'
import { openOwnServers, serversMissing } from '../support/processes.ts'
import { isGate } from '../support/tier.ts'
import { onServers } from './servers.ts'

const payments = isGate ? 12 : 24

describe.skipIf(serversMissing !== null)(
  onServers('payments through a provider with ambiguous answers'),
  () => {
    test('are neither doubled nor lost while executors and the provider are killed and frozen', async () => {
      const backend = await openOwnServers()
      onTestFinished(() => backend.drop())
      const { database } = backend.config
      const { figures, failures } = await payMany({
        ...{ databaseUrl: database.kind === 'postgres' ? database.url : '', postgres: null },
        ...{
          payments,
          stuck: 0,
          faultEveryS: 0.5,
          seed: 7,
          say() {},
          signal: AbortSignal.timeout(280_000),
        },
      })
      invariant(() => expect(figures).toMatchObject({ doubled: 0, lost: 0 }))
      expect(failures).toEqual([])
      expect(figures).toMatchObject({ payments })
    })
  },
)
