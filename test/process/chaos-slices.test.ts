// tier: all
import { describe, expect, test } from 'vitest'
import type { Suite } from '../../chaos/suite.ts'
import agents from '../../chaos/suites/agents.suite.ts'
import attack from '../../chaos/suites/attack.suite.ts'
import badModels from '../../chaos/suites/bad-models.suite.ts'
import campaign from '../../chaos/suites/campaign.suite.ts'
import crashPoints from '../../chaos/suites/crash-points.suite.ts'
import outage from '../../chaos/suites/outage.suite.ts'
import poison from '../../chaos/suites/poison.suite.ts'
import rolling from '../../chaos/suites/rolling.suite.ts'
import storm from '../../chaos/suites/storm.suite.ts'
import uploads from '../../chaos/suites/uploads.suite.ts'
import vendors from '../../chaos/suites/vendors.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { drawSeed } from '../support/random-seed.ts'
import { onServers } from './servers.ts'

/** Slices of `npm run chaos`, one after the other: two fleets at once are more than a small machine has time for. */
const slices: [name: string, suite: Suite, scale: number][] = [
  ['agents', agents, 0.02],
  ['attack', attack, 0.01],
  ['bad-models', badModels, 0.03],
  ['campaign', campaign, 0.01],
  ['crash-points', crashPoints, 0.005],
  ['outage', outage, 0.1],
  ['poison', poison, 1 / 6],
  ['rolling', rolling, 0.2],
  ['storm', storm, 0.04],
  ['uploads', uploads, 1 / 64],
  ['vendors', vendors, 0.02],
]
const sliceMs = 600_000

describe.skipIf(serversMissing !== null)(onServers('a slice of'), () => {
  test.each(slices)('chaos %s finds nothing', { timeout: sliceMs }, async (name, suite, scale) => {
    const seed = drawSeed()
    const lines = [`npm run chaos -- ${name} --seed ${seed} --scale ${scale}`]
    const say = (line: string): void => void lines.push(line)
    const { failures } = await suite.run({ seed, scale, say, signal: AbortSignal.timeout(sliceMs - 20_000) })
    expect(failures, lines.join('\n')).toEqual([])
  })
})
