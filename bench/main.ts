import { parseArgs } from 'node:util'
import { record, writePage } from './report/page.ts'
import { build } from './support/build.ts'
import { caseNames } from './support/case-names.ts'
import { openBench } from './support/measure.ts'
import { measureCase } from './support/repeat.ts'
import { openServers } from './support/servers.ts'

/**
 * `npm run bench [-- name …] [--quick] [--repeat N] [--scale X] [--only variant] [--record]`: measures the cases named, or all;
 * `report` only draws docs/performance.md and docs/performance/ again.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    repeat: { type: 'string' },
    /** 1 is what the page reports; counts are multiplied by it. */
    scale: { type: 'string', default: '1' },
    /** Only the variants whose name holds this. */
    only: { type: 'string', default: '' },
    /** The headline alone, once. */
    quick: { type: 'boolean', default: false },
    /** Keeps the figures for docs/performance/. */
    record: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

const usage = `npm run bench -- [NAME …] [options]

Measures the cases named, or all, on servers of its own, and prints the figures. \`report\` in place of names only draws
docs/performance.md and docs/performance/ again, from the figures that --record has kept.

  --repeat N      how often each case is measured (3)
  --scale X       counts are multiplied by it; 1 is what docs/performance/ reports (${values.scale})
  --only TEXT     only the variants whose name has this text
  --quick         the case \`headline\` alone, once
  --record        keeps the figures and draws docs/performance/
  --help          prints this

Cases: ${caseNames([]).join(', ')}`

const main = async (): Promise<void> => {
  if (values.help) return console.log(usage)
  if (positionals[0] === 'report') return writePage()
  const names = values.quick ? ['headline'] : caseNames(positionals)
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => stop.abort(new Error('stopped by hand')))
  await using _servers = await openServers()
  await using built = await build(null)
  await using bench = await openBench(built)
  for (const name of names) {
    const options = {
      repeat: Number(values.repeat ?? (values.quick ? 1 : 3)),
      scale: Number(values.scale),
      only: values.only,
    }
    const measured = await measureCase(bench, name, options, stop.signal)
    if (values.record) record(name, measured, options)
  }
  if (values.record) writePage()
}

await main()
