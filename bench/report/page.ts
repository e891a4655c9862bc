import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { root } from '../support/build.ts'
import type { Repeated } from '../support/repeat.ts'
import { round } from '../support/statistics.ts'
import { charts } from './charts.ts'
import { drawPeers } from './peers.ts'
import { reachRows } from './reach/reach.ts'

/** The latest measurement of one case. */
type Recorded = {
  date: string
  /** `git describe --always --dirty` of the tree that was measured. */
  commit: string
  machine: string
  /** Load average of the machine over the last minute of the case, its own load included. */
  load: number
  repeat: number
  scale: number
  measured: Repeated
}

const page = join(root, 'docs/performance.md')
const folder = join(root, 'docs/performance')
const file = join(folder, 'latest.json')
/** Read at the start: the figures of the first case change the tree, and not what is measured. */
const commit = execFileSync('git', ['describe', '--always', '--dirty'], {
  cwd: root,
  encoding: 'utf8',
}).trim()

/** Replaces the recorded figures of a case. */
export const record = (
  name: string,
  measured: Repeated,
  { repeat, scale }: { repeat: number; scale: number },
): void => {
  const found: Recorded = {
    date: new Date().toISOString(),
    commit,
    machine: `${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), Node ${process.version}`,
    load: round(loadavg()[0] ?? Number.NaN),
    repeat,
    scale,
    measured,
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${JSON.stringify({ ...recorded(), [name]: found }, null, 2)}\n`)
}

const recorded = (): Record<string, Recorded> => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Recorded>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

/**
 * Writes the recorded figures: the ratios to peers into docs/performance.md, between its markers; beside it the targets, all
 * figures and the charts.
 */
export const writePage = (): void => {
  const cases = recorded()
  const measured = Object.fromEntries(Object.entries(cases).map(([name, found]) => [name, found.measured]))
  for (const [name, chart] of Object.entries(charts(measured))) writeFileSync(join(folder, name), chart)
  // a run on a smaller scale proves no target
  const whole = Object.fromEntries(Object.entries(measured).filter(([name]) => cases[name]?.scale === 1))
  const listCommits = (names: readonly string[]): string =>
    [...new Set(names.flatMap((name) => cases[name]?.commit ?? []))].join(', ')
  const rows = reachRows(whole).map(
    ({ what, measured, reach, stretch, verdict, cases: from }) =>
      `| ${what} | ${measured} | ${reach} | ${stretch} | ${verdict === 'not reached' ? `**${verdict}**` : verdict} | ${listCommits(from)} |`,
  )
  const targets = [
    '| what | measured | target | stretch target | result | commit |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
  const peers = drawPeers((name, variant, figure) => whole[name]?.[variant]?.[figure]?.median ?? Number.NaN)
  replaceBetween(page, 'peers', peers)
  replaceBetween(join(folder, 'targets.md'), 'targets', targets)
  writeFileSync(
    join(folder, 'figures.md'),
    `# Performance: all figures\n\`npm run bench -- report\` writes this page. [Performance](../performance.md) is its summary.\n\n${Object.entries(cases).map(drawCase).join('\n\n')}\n`,
  )
}

const replaceBetween = (path: string, mark: string, drawn: string): void => {
  const text = readFileSync(path, 'utf8')
  const [before, , after] = text.split(new RegExp(`(?<=<!-- ${mark} -->)|(?=<!-- end of ${mark} -->)`))
  if (before === undefined || after === undefined)
    throw new Error(`${path} has lost its markers <!-- ${mark} --> and <!-- end of ${mark} -->`)
  writeFileSync(path, `${before}\n${drawn}\n${after}`)
}

const drawCase = ([name, { date, commit, machine, load, repeat, scale, measured }]: [
  string,
  Recorded,
]): string =>
  [
    `## ${name}`,
    '',
    `${date.slice(0, 16).replace('T', ' ')} UTC, commit ${commit}, ${machine}, load ${load}; median of ${repeat}${
      scale === 1 ? '' : `, **at scale ${scale}**`
    }.`,
    '',
    '| | figure | median | lowest to highest |',
    '|---|---|---|---|',
    ...Object.entries(measured).flatMap(([variant, figures]) =>
      Object.entries(figures).map(
        ([figure, { median, min, max }]) =>
          `| ${variant} | ${figure} | ${round(median)} | ${round(min)} to ${round(max)} |`,
      ),
    ),
  ].join('\n')
