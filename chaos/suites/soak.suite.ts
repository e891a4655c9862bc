import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { drawMemory } from '../soak/chart.ts'
import { csvOf } from '../soak/samples.ts'
import { soak } from '../soak/soak.ts'
import type { Suite } from '../suite.ts'

const docs = fileURLToPath(new URL('../../docs/reliability/', import.meta.url))
const drawn = ['api_rss_mb', 'worker_rss_mb', 'api_heap_mb', 'worker_heap_mb', 'redis_mb']

const suite: Suite = {
  about:
    'an hour at half load: nothing lost or doubled, memory flat over the last 45 minutes, as quick as at first',
  async run(options) {
    const { samples, ...findings } = await soak(options)
    const folder = mkdtempSync(join(tmpdir(), 'mason-soak-'))
    writeFileSync(join(folder, 'samples.csv'), csvOf(samples))
    // a slice is no figure for the documentation
    const pictures = options.scale < 1 ? folder : docs
    mkdirSync(pictures, { recursive: true })
    writeFileSync(join(pictures, 'soak.svg'), drawMemory(samples, drawn))
    options.say(`samples are in ${join(folder, 'samples.csv')}, drawn in ${join(pictures, 'soak.svg')}`)
    return findings
  },
}

export default suite
