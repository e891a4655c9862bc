import { randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { attack } from '../../chaos/attack/attack.ts'
import { families } from '../../chaos/attack/input.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('under attack'), () => {
  test('inputs of every hostile family are refused or harmless, and the runs of another business complete', async () => {
    const seed = randomInt(2 ** 31)
    const lines: string[] = [`seed ${seed}`]
    const say = (line: string): void => void lines.push(line)
    const { figures, failures } = await attack({
      seed,
      scale: 0.01,
      say,
      signal: AbortSignal.timeout(280_000),
    })
    expect(failures, lines.join('\n')).toEqual([])
    for (const family of families) expect(figures[`${family}: inputs`]).toBeGreaterThanOrEqual(5)
  }, 300_000)
})
