import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Figures } from './suite.ts'

type Recorded = {
  date: string
  minutes: number
  /** `git describe --always --dirty` of the tree that ran. */
  commit: string
  seed: number
  scale: number
  figures: Figures
  failures: string[]
}

const docs = fileURLToPath(new URL('../docs/', import.meta.url))
const folder = join(docs, 'reliability')
const page = join(folder, 'figures.md')

/** Adds a run of a suite to the recorded ones; a failed run is recorded too. */
export const record = (suite: string, run: Recorded): void => {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${suite}.json`)
  const runs = [...recorded(file), run]
  writeFileSync(file, `${JSON.stringify(runs, null, 2)}\n`)
}

const recorded = (file: string): Recorded[] => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Recorded[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

const heading = `# Reliability: every recorded run
\`npm run chaos -- report\` writes this page. [Reliability](../reliability.md) is its summary. Failed runs are here too; names of
figures and failures are quoted as they were recorded. The tests that caught each mutant are in [mutants.json](mutants.json).`

/** Writes the page of the recorded figures, `docs/reliability/figures.md`. */
export const writeReport = (): void => {
  const sections = readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map(
      (file) =>
        `## ${file.slice(0, -'.json'.length)}\n\n${recorded(join(folder, file)).map(drawRun).join('\n')}`,
    )
  writeFileSync(page, `${heading}\n\n${sections.join('\n')}`)
}

/** A run as a table; the tests that caught each mutant are only in mutants.json. */
const drawRun = ({ date, minutes, commit, seed, scale, figures, failures }: Recorded): string =>
  [
    `${date.slice(0, 16).replace('T', ' ')} UTC, commit ${commit}, seed ${seed}, scale ${scale}, ${minutes} minutes: ${
      failures.length === 0 ? 'passed' : `**${failures.length} failures**`
    }`,
    '',
    '| figure | value |',
    '|---|---|',
    ...Object.entries(figures)
      .filter(([, value]) => !String(value).startsWith('caught by '))
      .map(([figure, value]) => `| ${figure} | ${value} |`),
    ...failures.map((failure) => `| failed | ${toCell(failure)} |`),
    '',
  ].join('\n')

/** A text as a cell of a table. Hostile inputs are quoted in failures: no control character may make the page binary. */
const toCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\p{Cc}+/gu, ' ')
