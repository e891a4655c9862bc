import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import type { Figures } from './case.ts'
import { build, root } from './support/build.ts'
import { caseNames } from './support/case-names.ts'
import { type Bench, openBench } from './support/measure.ts'
import { openServers } from './support/servers.ts'
import { round, spreadOf } from './support/statistics.ts'

/**
 * `npx tsx bench/compare.ts <git ref> [case …] [--repeat N] [--scale X]`: the working tree against a commit, both
 * built and measured by the bench of the working tree, in turns. Prints the ratio of each figure: 0.5 is half as much.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { repeat: { type: 'string', default: '5' }, scale: { type: 'string', default: '0.3' } },
})

const measureBoth = async (
  benches: readonly Bench[],
  name: string,
  variant: string,
  signal: AbortSignal,
): Promise<Figures[]> => {
  const sides: Figures[] = []
  for (const bench of benches) sides.push(await bench.measure(name, variant, Number(values.scale), signal))
  return sides
}

const compare = async (before: Bench, now: Bench, name: string, signal: AbortSignal): Promise<void> => {
  const { ours } = await now.load(name)
  for (const variant of Object.keys(ours)) {
    const pairs: [before: Figures, now: Figures][] = []
    for (let repetition = 0; repetition < Number(values.repeat); repetition++) {
      const turned = repetition % 2 === 1
      const sides = await measureBoth(turned ? [now, before] : [before, now], name, variant, signal)
      const [one = {}, other = {}] = turned ? sides.toReversed() : sides
      pairs.push([one, other])
    }
    for (const figure of Object.keys(pairs[0]?.[0] ?? {})) show(name, variant, figure, pairs)
  }
}

const show = (
  name: string,
  variant: string,
  figure: string,
  pairs: readonly (readonly [Figures, Figures])[],
): void => {
  const side = (which: 0 | 1) => spreadOf(pairs.map((pair) => pair[which][figure] ?? Number.NaN)).median
  const { median, min, max } = spreadOf(
    pairs.map(([before, now]) => (now[figure] ?? Number.NaN) / (before[figure] ?? Number.NaN)),
  )
  const figures = `${round(side(0))} -> ${round(side(1))}`
  console.log(
    `${`${name}, ${variant}`.padEnd(26)} ${figure.padEnd(22)} ${figures.padEnd(20)} x ${round(median)}   (${round(min)} to ${round(max)})`,
  )
}

const main = async (): Promise<void> => {
  const [ref, ...wanted] = positionals
  if (ref === undefined) throw new Error('say which commit: npx tsx bench/compare.ts <git ref> [case …]')
  const names = caseNames(wanted)
  const commit = execFileSync('git', ['rev-parse', '--verify', `${ref}^{commit}`], {
    cwd: root,
    encoding: 'utf8',
  }).trim()
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => stop.abort(new Error('stopped by hand')))
  await using _servers = await openServers()
  await using old = await build(commit)
  await using fresh = await build(null)
  await using before = await openBench(old)
  await using now = await openBench(fresh)
  for (const name of names) await compare(before, now, name, stop.signal)
}

await main()
