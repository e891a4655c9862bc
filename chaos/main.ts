import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { preferBuild } from '../test/support/script-flags.ts'
import { record, writeReport } from './report.ts'
import type { Suite } from './suite.ts'

/** `npm run chaos`: runs the suites named, or all. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string' },
    scale: { type: 'string', default: '1' },
    /** Of a table, the rows whose name or file has one of these texts. */
    only: { type: 'string', multiple: true },
    /** Keeps the figures for `docs/reliability/figures.md`. */
    record: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

/** Read at the start: the figures of the first suite change the tree, and not what is tried. */
const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
const folder = new URL('./suites/', import.meta.url)
const known = readdirSync(folder).flatMap((file) => /^(.+)\.suite\.ts$/.exec(file)?.[1] ?? [])
const usage = `npm run chaos -- [SUITE …] [options]

Damages a running Mason on purpose and checks what has to hold: the suites named, or all (chaos/README.md). \`report\` in place
of names only draws docs/reliability/figures.md again, from the figures that --record has kept.

  --seed N      repeats a run; without it one is drawn and printed
  --scale X     counts and times are multiplied by it (${values.scale})
  --only TEXT   of a table such as that of mutants, the rows whose name or file has this text; several times for several texts
  --record      keeps the figures and draws docs/reliability/figures.md
  --help        prints this

Suites: ${known.join(', ')}`

const numberOf = (flag: string, text: string): number => {
  const value = Number(text)
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${flag} wants a number, not "${text}"`)
  return value
}

const runSuite = async (name: string, seed: number, scale: number, signal: AbortSignal): Promise<boolean> => {
  const { default: suite } = (await import(new URL(`${name}.suite.ts`, folder).href)) as { default: Suite }
  const say = (line: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${name}: ${line}`)
  say(`${suite.about} (--seed ${seed} --scale ${scale})`)
  const startedAt = new Date()
  const { figures, failures } = await suite.run({
    seed,
    scale,
    say,
    signal,
    ...(values.only && { only: values.only }),
  })
  for (const [figure, value] of Object.entries(figures)) say(`${figure}: ${value}`)
  for (const failure of failures) say(`FAILED ${failure}`)
  say(
    failures.length === 0
      ? 'passed'
      : `failed; again with: npm run chaos -- ${name} --seed ${seed} --scale ${scale}`,
  )
  if (values.record)
    record(name, {
      date: startedAt.toISOString(),
      minutes: Math.round((Date.now() - startedAt.getTime()) / 6000) / 10,
      commit,
      seed,
      scale,
      figures,
      failures,
    })
  return failures.length === 0
}

const main = async (): Promise<void> => {
  if (values.help) return console.log(usage)
  if (positionals[0] === 'report') return writeReport()
  const unknown = positionals.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new Error(`no suite "${unknown.join('", "')}"; there are: ${known.join(', ')}`)
  // workers that die start again as fast as in production
  preferBuild()
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => stop.abort(new Error(`stopped by ${signal}`)))
  const seed = values.seed === undefined ? randomInt(2 ** 31) : numberOf('seed', values.seed)
  for (const name of positionals.length > 0 ? positionals : known)
    if (!(await runSuite(name, seed, numberOf('scale', values.scale), stop.signal))) process.exitCode = 1
  if (values.record) writeReport()
}

await main()
