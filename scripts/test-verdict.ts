/** How one test of a file ended; `error` has the stacks of a failed one. */
type TestResult = { name: string; state: 'passed' | 'failed' | 'skipped'; error?: string }
/** How a test file ended in one project of vitest; `file` is relative to the root. */
export type FileResult = { file: string; path: string; project: string; tests: TestResult[] }
/** A line of the log that a run of the tests writes. */
export type LogLine =
  | FileResult
  | { started: string; project: string }
  | { unhandled: string[] }
  | { pid: number; path: string }

/** One run of vitest. */
type TestRun = {
  results: FileResult[]
  /** Errors outside of tests, such as the end of a worker process. */
  unhandled: string[]
  /** Files that had begun and not ended. */
  running: string[]
  /** The files of each process, in their order. */
  processes: Map<number, string[]>
}

/** What a broken promise of Mason says first, in the tests. It is never repeated. */
export const violated = 'invariant violated:'
const repeatable = ['served', 'process', 'console']
const keyOf = ({ project, file }: FileResult): string => `${project} ${file}`
const failuresOf = (result: FileResult): TestResult[] =>
  result.tests.filter(({ state }) => state === 'failed')

export const readRun = (log: string): TestRun => {
  const run: TestRun = { results: [], unhandled: [], running: [], processes: new Map() }
  const results = new Map<string, FileResult>()
  const running = new Map<string, string>()
  // what is killed while it writes leaves half a line
  for (const text of log.split('\n').filter((one) => one.startsWith('{') && one.endsWith('}'))) {
    const line = JSON.parse(text) as LogLine
    if ('pid' in line) run.processes.set(line.pid, [...(run.processes.get(line.pid) ?? []), line.path])
    else if ('unhandled' in line) run.unhandled.push(...line.unhandled)
    else if ('started' in line)
      running.set(`${line.project} ${line.started}`, `${line.started} (${line.project})`)
    else {
      results.set(keyOf(line), line)
      running.delete(keyOf(line))
    }
  }
  return { ...run, results: [...results.values()], running: [...running.values()] }
}

type RepeatRules = {
  most?: number
  mayRepeat?: (project: string) => boolean
  /** The files in which each assertion that fails is a broken promise. */
  invariants?: readonly string[]
}

/** The files that may run once more, alone: of at most `most`, none a unit test and none with a violated invariant. */
export const filesToRepeat = (
  run: TestRun,
  { most = 2, mayRepeat = (project) => repeatable.includes(project), invariants = [] }: RepeatRules = {},
): FileResult[] => {
  const failed = run.results.filter((result) => failuresOf(result).length > 0)
  const isFirm = failed.some(
    (result) =>
      !mayRepeat(result.project) ||
      failuresOf(result).some(
        // what was awaited in vain is an Error
        ({ error = '' }) =>
          error.includes(violated) ||
          (invariants.includes(result.file) && error.startsWith('AssertionError')),
      ),
  )
  return isFirm || run.unhandled.length > 0 || run.running.length > 0 || failed.length > most ? [] : failed
}

/** What failed and what was flaky, as lines, and how many tests ended how. */
export type Verdict = {
  failed: string[]
  flaky: string[]
  counts: { passed: number; failed: number; skipped: number }
}

/** Over both runs: the second one replaces the results of its files. */
export const verdictOf = (first: TestRun, second?: TestRun): Verdict => {
  const again = new Map(second?.results.map((result) => [keyOf(result), result]))
  const failed: string[] = []
  const flaky: string[] = []
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const lineOf = ({ file, project }: FileResult, { name, error }: TestResult): string =>
    `${file} > ${name} (${project}): ${firstLineOf(error)}`
  for (const result of first.results) {
    const last = again.get(keyOf(result)) ?? result
    for (const { state } of last.tests) counts[state]++
    failed.push(...failuresOf(last).map((test) => `FAILED ${lineOf(last, test)}`))
    if (last === result || failuresOf(last).length > 0) continue
    const before = [...first.processes.values()].find((paths) => paths.includes(result.path)) ?? []
    const earlier = before
      .slice(0, before.indexOf(result.path))
      .map((path) => path.replace(/^.*\/test\//, ''))
    flaky.push(
      ...failuresOf(result).map((test) => `FLAKY ${lineOf(result, test)}`),
      `  before it in its process: ${earlier.join(', ') || 'nothing'}`,
    )
  }
  for (const { unhandled, running } of second ? [first, second] : [first])
    failed.push(
      ...unhandled.map((error) => `FAILED outside of tests: ${firstLineOf(error)}`),
      ...running.map((file) => `FAILED ${file}: it was still running`),
    )
  return { failed, flaky, counts: { ...counts, failed: failed.length } }
}

/** An invariant comes first: a property that fails says so only after what it drew. */
const firstLineOf = (error = 'no error'): string => {
  const lines = error.split('\n').map((line) => line.trim())
  return lines.find((line) => line.includes(violated)) ?? lines[0] ?? error
}
