import { expect, test } from 'vitest'
import { type FileResult, filesToRepeat, readRun, verdictOf, violated } from '../../scripts/test-verdict.ts'
import { readMarks } from '../support/marks.ts'

const fileOf = (file: string, project: string, error?: string): FileResult => ({
  ...{ file, path: `/mason/${file}`, project },
  tests: [
    { name: 'a', state: 'passed' },
    error === undefined ? { name: 'b', state: 'skipped' } : { name: 'b', state: 'failed', error },
  ],
})
const runOf = (...lines: readonly object[]) => readRun(lines.map((line) => JSON.stringify(line)).join('\n'))
const repeated = (...files: FileResult[]) => filesToRepeat(runOf(...files)).map(({ file }) => file)
const cli = fileOf('test/process/cli.test.ts', 'process', 'Error: late')
const run = fileOf('test/engine/runs/run.test.ts', 'served', 'Error: slow')

test('two failed files of processes and servers are repeated, and nothing else is', () => {
  expect(repeated(cli, run, fileOf('test/graph/walk.test.ts', 'unit'))).toEqual([cli.file, run.file])
  expect(repeated(cli, fileOf('test/graph/walk.test.ts', 'unit', 'Error: x'))).toEqual([])
  expect(repeated(cli, fileOf(run.file, 'embedded', 'Error: x'))).toEqual([])
  expect(repeated(cli, run, fileOf('test/process/runs.test.ts', 'process', 'Error: x'))).toEqual([])
  expect(repeated(cli, fileOf(run.file, 'served', `Error: x\ncaused by ${violated} lost`))).toEqual([])
  const lost = fileOf('test/engine/runs/orders.test.ts', 'served', 'AssertionError: expected 1 to be 2')
  const waited = fileOf(lost.file, 'served', 'Error: waited 90000 ms in vain')
  expect(filesToRepeat(runOf(lost))).toEqual([lost])
  expect(filesToRepeat(runOf(lost), { invariants: [lost.file] })).toEqual([])
  expect(filesToRepeat(runOf(waited), { invariants: [lost.file] })).toEqual([waited])
  expect(filesToRepeat(runOf(cli, { unhandled: ['Error: worker exited'] }))).toEqual([])
  expect(filesToRepeat(runOf(cli, { started: '/mason/x.test.ts', project: 'unit' }))).toEqual([])
})

test('a repeat replaces the results of its files, and says what had run before in their process', () => {
  const first = runOf(
    ...[
      { pid: 7, path: '/mason/test/app/api.test.ts' },
      { pid: 8, path: '/mason/x.test.ts' },
    ],
    ...[{ pid: 7, path: run.path }, cli, run, fileOf('test/a.test.ts', 'unit')],
  )
  expect(verdictOf(first)).toEqual({
    failed: [
      'FAILED test/process/cli.test.ts > b (process): Error: late',
      'FAILED test/engine/runs/run.test.ts > b (served): Error: slow',
    ],
    flaky: [],
    counts: { passed: 3, failed: 2, skipped: 1 },
  })
  const second = runOf(cli, fileOf(run.file, 'served'))
  expect(verdictOf(first, second)).toEqual({
    failed: ['FAILED test/process/cli.test.ts > b (process): Error: late'],
    flaky: [
      'FLAKY test/engine/runs/run.test.ts > b (served): Error: slow',
      '  before it in its process: app/api.test.ts',
    ],
    counts: { passed: 3, failed: 1, skipped: 2 },
  })
})

test('what was running when the log broke off is named', () => {
  const { failed, counts } = verdictOf(readRun('{"started":"test/x.test.ts","project":"unit"}\n{"star'))
  expect(failed).toEqual(['FAILED test/x.test.ts (unit): it was still running'])
  expect(counts.failed).toBe(1)
})

test('a mark that is unknown is an error that names the file', () => {
  expect([...readMarks('// tier: all\n// why it is long\n\nimport x\n// tier: gate', 'a.test.ts')]).toEqual([
    'tier: all',
  ])
  expect(() => readMarks('// tier: nightly\n', 'a.test.ts')).toThrow('a.test.ts has the unknown mark')
})
