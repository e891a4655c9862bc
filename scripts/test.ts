import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filesMarked } from '../test/support/marks.ts'
import { isBuildNew } from '../test/support/script-flags.ts'
import { filesToRepeat, readRun, type Verdict, verdictOf } from './test-verdict.ts'

/**
 * `npm test [-- FILTER …]` and `npm run test:all [-- --part NAME [FILTER …]]` (docs/testing.md). The last line counts the
 * tests; before it stand those that failed and those that were flaky. test-results/ has the same lines, and the log of each
 * run with whole errors.
 */
const args = process.argv.slice(2)
const isAll = args[0] === '--all'
/** Of test:all only the parts whose name has this text. */
const partText = args[1] === '--part' ? args[2] : undefined
const filters = args.slice(!isAll ? 0 : partText === undefined ? 1 : 3)
const resultsFolder = 'test-results'
const hasServers = Boolean(process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL)
const startedAt = Date.now()
const secondsSince = (ms: number): number => Math.round((Date.now() - ms) / 1000)
/** When all must be over: of npm test as a whole, of test:all each part. */
const limitMs = Number(process.env.MASON_TEST_LIMIT_S ?? (isAll ? 7200 : 1800)) * 1000
const leftMs = (): number => (isAll ? limitMs : Math.max(0, startedAt + limitMs - Date.now()))

/** What is running, each in a process group of its own, so that all of it can be ended. */
const running = new Set<ChildProcess>()
const endAll = (signal: NodeJS.Signals): void => {
  for (const { pid } of running)
    try {
      process.kill(-(pid ?? 0), signal)
    } catch {
      // it has just ended
    }
}
for (const [signal, code] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const])
  process.once(signal, () => {
    endAll('SIGKILL')
    process.exit(code)
  })

type Ended = { code: number; output: string; isLate: boolean }

/** Runs a command until it ends or its time is over. `pipe` keeps what it writes for the caller. */
const run = async (
  command: readonly string[],
  env: NodeJS.ProcessEnv = {},
  stdio: 'inherit' | 'pipe' = 'inherit',
) => {
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    ...{ detached: true, env: { ...process.env, ...env }, stdio: ['ignore', stdio, stdio] },
  })
  running.add(child)
  const ended: Ended = { code: 1, output: '', isLate: false }
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      ended.output += text
    })
  const timer = setTimeout(() => {
    ended.isLate = true
    endAll('SIGTERM')
    setTimeout(() => endAll('SIGKILL'), 5000).unref()
  }, leftMs())
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  running.delete(child)
  return { ...ended, code: ended.isLate ? 124 : (code ?? 1) }
}

const runVitest = async (name: string, args: readonly string[], env: NodeJS.ProcessEnv) => {
  const log = join(resultsFolder, `${name}.jsonl`)
  writeFileSync(log, '')
  const { code, isLate } = await run(['node', 'node_modules/vitest/vitest.mjs', 'run', ...args], {
    ...{ ...env, MASON_TEST_LOG: log },
  })
  const read = readRun(readFileSync(log, 'utf8'))
  if (isLate) read.unhandled.push(`the limit of ${limitMs / 1000} s was reached`)
  else if (code !== 0 && verdictOf(read).failed.length === 0)
    read.unhandled.push(`vitest ended with exit code ${code} before it wrote why`)
  return read
}

/** Runs tests, and those files once more, alone, that may be repeated. test:all asks it of all that failed. */
const runTests = async (name: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Verdict> => {
  const first = await runVitest(name, args, env)
  const repeated = isAll
    ? filesToRepeat(first, { most: 20, mayRepeat: () => true })
    : filesToRepeat(first, { invariants: filesMarked('asserts: invariants') })
  if (repeated.length === 0) return verdictOf(first)
  const files = repeated.map(({ file }) => file)
  const projects = new Set(repeated.map(({ project }) => `--project=${project}`))
  console.log(`\nonce more, alone: ${files.join(', ')}`)
  const alone = { ...env, MASON_TEST_WORKERS: '1' }
  return verdictOf(first, await runVitest(`${name}-again`, [...projects, ...files], alone))
}

/** One part without tests of its own: it holds or it does not. */
const runStep = async (
  name: string,
  command: readonly string[],
  stdio: 'inherit' | 'pipe' = 'inherit',
): Promise<Verdict> => {
  const since = Date.now()
  const { code, output } = await run(command, {}, stdio)
  console.log(`${output}${name} (${secondsSince(since)} s)`)
  const failed = code === 0 ? [] : [`FAILED ${name}: exit code ${code}`]
  return { failed, flaky: [], counts: { passed: 1 - failed.length, failed: failed.length, skipped: 0 } }
}

const sum = (verdicts: readonly Verdict[]): Verdict => ({
  failed: verdicts.flatMap(({ failed }) => failed),
  flaky: verdicts.flatMap(({ flaky }) => flaky),
  counts: {
    passed: verdicts.reduce((all, { counts }) => all + counts.passed, 0),
    failed: verdicts.reduce((all, { counts }) => all + counts.failed, 0),
    skipped: verdicts.reduce((all, { counts }) => all + counts.skipped, 0),
  },
})

const finish = (verdict: Verdict, table: readonly string[] = []): void => {
  const { failed, flaky, counts } = verdict
  const closing = `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`
  const text = [...table, ...failed, ...flaky, closing].join('\n')
  writeFileSync(join(resultsFolder, 'summary.txt'), `${text}\n`)
  process.exitCode = failed.length > 0 || (isAll && flaky.length > 0) ? 1 : 0
  console.log(`\n${text}`)
}

/** The checks in two chains of about the same length, one a core; and the build, which `npm ci` has just made. */
const prepare = async (): Promise<Verdict> => {
  const build = isBuildNew() ? [] : ['build']
  const chains = [['check:types', ...build, 'build:console', 'check:repository'], ['check:rules']]
  const runChain = async (names: readonly string[]): Promise<Verdict[]> => {
    const verdicts: Verdict[] = []
    for (const name of names)
      verdicts.push(await runStep(`npm run ${name}`, ['npm', 'run', '--silent', name], 'pipe'))
    return verdicts
  }
  return sum((await Promise.all(chains.map(runChain))).flat())
}

const runGate = async (): Promise<void> => {
  const prepared = await prepare()
  if (prepared.failed.length > 0) return finish(prepared)
  const checksS = secondsSince(startedAt)
  const verdict = await runTests('gate', filters, { MASON_TEST_TIER: 'gate' })
  const allS = secondsSince(startedAt)
  const times = `npm test ${allS} s (checks and build ${checksS} s, tests ${allS - checksS} s)`
  process.stderr.write(`\nci: steps: ${process.env.CI_STEPS ?? ''}${times}\n`)
  finish(verdict)
}

/** Files whose properties are worth more draws than one seed gives. */
const propertyFiles = (): string[] =>
  readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .filter((path) => readFileSync(path, 'utf8').includes("from 'fast-check'"))

/** The suites of chaos but those of hours, and those that lack what they need here. */
const slices = (): string[] => {
  const left = ['soak', 'leak', 'mutants']
  if (!process.env.CHAOS_BUILD) left.push('upgrade')
  if (process.getuid?.() !== 0) left.push('full-disk')
  return readdirSync('chaos/suites')
    .flatMap((file) => /^(.+)\.suite\.ts$/.exec(file)?.[1] ?? [])
    .filter((name) => !left.includes(name))
}

const runAll = async (): Promise<void> => {
  const parts: { name: string; seconds: number; verdict: Verdict }[] = []
  const names: string[] = []
  const part = async (name: string, runPart: () => Promise<Verdict>): Promise<void> => {
    names.push(name)
    if (!name.includes(partText ?? '')) return
    console.log(`\n== ${name}`)
    const since = Date.now()
    const verdict = await runPart()
    parts.push({ name, seconds: secondsSince(since), verdict })
  }
  await part('check and build', prepare)
  const seeds = Array.from({ length: 5 }, () => String(randomInt(2 ** 31)))
  if (process.env.MASON_TEST_SEED) seeds[0] = process.env.MASON_TEST_SEED
  for (const [at, seed] of seeds.entries()) {
    const files = at === 0 ? filters : propertyFiles()
    await part(`${at === 0 ? 'every test' : 'properties'}, MASON_TEST_SEED=${seed}`, () =>
      runTests(`all-${at}`, files, { MASON_TEST_SEED: seed }),
    )
  }
  for (const version of ['22', '24'])
    await part(`unit and embedded tests on Node ${version}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'mason-node-'))
      const install = `npm install --prefix ${folder} --no-save --no-audit --no-fund node@${version}`
      const installed = await runStep('install', install.split(' '), 'pipe')
      const PATH = `${join(folder, 'node_modules/node/bin')}:${process.env.PATH}`
      const env = { PATH, MASON_TEST_TIER: 'gate', TEST_DATABASE_URL: undefined, TEST_REDIS_URL: undefined }
      const projects = ['--project=embedded', ...filters]
      const verdict =
        installed.failed.length > 0 ? installed : await runTests(`node-${version}`, projects, env)
      rmSync(folder, { recursive: true })
      return verdict
    })
  const node = 'node --import tsx'
  for (const name of hasServers ? slices() : []) {
    const command = `chaos/main.ts ${name} --scale 0.05 --seed ${seeds[0]}`
    await part(`chaos ${name}`, () => runStep(command, `${node} ${command}`.split(' ')))
  }
  const bench = `${node} bench/main.ts --repeat 1 --scale 0.02`
  if (hasServers) await part('benchmarks', () => runStep('bench', bench.split(' ')))
  if (parts.length === 0) {
    const failed = [`FAILED no part has "${partText}" in its name: use one of ${names.join('; ')}`]
    return finish({ failed, flaky: [], counts: { passed: 0, failed: 1, skipped: 0 } })
  }
  const rows = parts.map(({ name, seconds, verdict: { counts, flaky } }) => {
    const flakyTests = flaky.filter((line) => line.startsWith('FLAKY')).length
    return `| ${name} | ${seconds} s | ${counts.passed} | ${counts.failed} | ${flakyTests} | ${counts.skipped} |`
  })
  const without = hasServers
    ? []
    : ['no servers: set TEST_DATABASE_URL and TEST_REDIS_URL for the served tests and chaos']
  const head = ['| part | time | passed | failed | flaky | skipped |', '|---|---|---|---|---|---|']
  finish(sum(parts.map(({ verdict }) => verdict)), [...without, ...head, ...rows])
}

rmSync(resultsFolder, { recursive: true, force: true })
mkdirSync(resultsFolder)
await (isAll ? runAll() : runGate())
