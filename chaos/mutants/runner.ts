import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { openDeadline } from '../../src/state/deadline.ts'
import { findIntegrationFiles } from '../../test/support/marks.ts'
import { type Mutant, mutate, type NamedTest } from './mutant.ts'

/** What the tests need of the project. */
const parts = [
  'src',
  'test',
  'chaos',
  'examples',
  'migrations',
  'scripts',
  'templates',
  'compose.yaml',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'README.md',
]

/** A copy of the project in a folder of its own, to change and test; the dependencies are shared. */
const copyProject = async (root: string) => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-mutant-'))
  for (const part of parts) await cp(join(root, part), join(folder, part), { recursive: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}
export type Copy = Awaited<ReturnType<typeof copyProject>>

/** What became of a test, and what it said when it failed. */
export type Verdicts = Map<string, { status: string; said: string }>
export const keyOf = ({ file, test }: NamedTest): string => `${file} > ${test}`

type Report = {
  testResults: {
    name: string
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[]
  }[]
}

const patienceMs = 240_000

const integrationFiles = findIntegrationFiles()
const projectOf = (file: string): string => (integrationFiles.includes(file) ? 'served' : 'unit')
const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Runs exactly these tests in the copy; integration tests on the servers. Gives what became of each. */
export const runTests = async (
  { folder }: Copy,
  tests: readonly NamedTest[],
  signal: AbortSignal,
): Promise<Verdicts> => {
  const verdicts: Verdicts = new Map()
  const output = join(folder, 'report', 'tests.json')
  await mkdir(dirname(output), { recursive: true })
  await rm(output, { force: true })
  const files = [...new Set(tests.map(({ file }) => file))]
  const names = [...new Set(tests.map(({ test }) => test))]
  const projects = [...new Set(files.map(projectOf))].flatMap((project) => ['--project', project])
  const args = [
    ...['node_modules/vitest/vitest.mjs', 'run', ...projects, ...files],
    ...[
      '-t',
      `^(${names.map(escaped).join('|')})$`,
      '--testTimeout',
      '20000',
      '--hookTimeout',
      '20000',
      '--maxWorkers',
      '1',
    ],
    ...['--reporter', 'json', '--outputFile', output],
  ]
  // a mutant may hang, and then there is no report: none of the tests has a verdict
  using deadline = openDeadline(patienceMs, signal)
  await runOrKill(args, folder, deadline.signal)
  signal.throwIfAborted()
  const text = await readFile(output, 'utf8').catch(() => '{"testResults":[]}')
  for (const { name, assertionResults } of (JSON.parse(text) as Report).testResults)
    for (const { fullName, status, failureMessages } of assertionResults)
      verdicts.set(keyOf({ file: name.slice(folder.length + 1), test: fullName }), {
        status,
        said: failureMessages.join('; ').split('\n')[0] ?? '',
      })
  return verdicts
}

/** Runs Node to its end, or with all that it started to the signal. */
const runOrKill = (args: readonly string[], cwd: string, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    // so many sequences as catch each mutant that names them
    const env = { ...process.env, MASON_INTERLEAVINGS: '220' }
    const child = spawn(process.execPath, args, { cwd, env, stdio: 'ignore', detached: true })
    const kill = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }
    signal.addEventListener('abort', kill)
    child.once('error', reject)
    child.once('exit', () => {
      signal.removeEventListener('abort', kill)
      resolve()
    })
  })

/** The mutants whose edits do not find their one place in the source. */
export const findMisplaced = async (root: string, mutants: readonly Mutant[]): Promise<string[]> => {
  const misplaced: string[] = []
  for (const mutant of mutants)
    try {
      mutate(await readFile(join(root, mutant.file), 'utf8'), mutant)
    } catch (error) {
      misplaced.push((error as Error).message)
    }
  return misplaced
}

/** Takes the guard out, works with the copy, and puts it back. */
export const withMutant = async <T>(copy: Copy, mutant: Mutant, work: () => Promise<T>): Promise<T> => {
  const path = join(copy.folder, mutant.file)
  const text = await readFile(path, 'utf8')
  await writeFile(path, mutate(text, mutant))
  try {
    return await work()
  } finally {
    await writeFile(path, text)
  }
}

/** Works on all items, as many at once as the machine has cores but two at most; each worker has its own copy. */
export const inCopies = async <Item>(
  root: string,
  items: readonly Item[],
  work: (copy: Copy, item: Item) => Promise<void>,
): Promise<void> => {
  const left = [...items]
  const one = async (): Promise<void> => {
    await using copy = await copyProject(root)
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(copy, item)
  }
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, one))
}
