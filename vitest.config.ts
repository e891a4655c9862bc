import { defineConfig } from 'vitest/config'
import { listRepeated } from './test/support/list-repeated.ts'
import { LongestFirst } from './test/support/longest-first.ts'
import { createStepTimes } from './test/support/step-times.ts'

const servers = process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL
// isolate: false loads each module once a worker and not once a file, a third of all CPU: no code here keeps module state
const integration = (name: 'embedded' | 'served') => ({
  extends: true as const,
  test: {
    name,
    include: ['test/integration/**/*.test.ts'],
    globalSetup: [`test/support/setup-${name}.ts`],
    env: { MASON_TEST_BACKEND: name },
    isolate: false,
    ...(name === 'served' && repeated),
  },
})

const files = (names: string[]): string[] => names.map((name) => `test/process/${name}.test.ts`)
/** These put the machine under load, or watch how long it takes: nothing else may run beside them. */
const loadSensitive = ['test/process/chaos-slices.test.ts']
/** Project after project: those that start processes of their own come after all others. */
const processes = (name: string, files: { include: string[]; exclude?: string[] }, maxWorkers: number) => ({
  extends: true as const,
  test: {
    name,
    ...files,
    globalSetup: ['test/support/setup-process.ts'],
    testTimeout: 300_000,
    ...repeated,
    maxWorkers,
    sequence: { groupOrder: maxWorkers === 1 ? 2 : 1 },
  },
})

/** Set by .ci/run: the seconds of its steps so far, and when npm test began. */
const { CI_STEPS: steps, CI_TESTS_SINCE: since } = process.env

export default defineConfig({
  test: {
    reporters: [...(steps ? [createStepTimes(steps, Number(since))] : []), 'default', listRepeated()],
    sequence: { sequencer: LongestFirst },
    // limits are for hangs only
    testTimeout: 180_000,
    hookTimeout: 300_000,
    // facts are waited for: the second that is usual is too short for a busy machine
    expect: { poll: { timeout: 90_000 } },
    // of two cores: a third file computes while others wait for servers and processes
    maxWorkers: 3,
    // what `mason-runtime` means inside this package: the build, as it is
    server: { deps: { external: [/\/dist\/src\//] } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/integration/**', 'test/process/**', 'test/console/**'],
          isolate: false,
        },
      },
      integration('embedded'),
      ...(servers ? [integration('served')] : []),
      processes(
        'process',
        { include: ['test/process/**/*.test.ts'], exclude: [...loadSensitive, ...(all ? [] : long)] },
        3,
      ),
      processes('console', { include: ['test/console/**/*.test.ts'] }, 3),
      ...(all ? [processes('process-alone', { include: loadSensitive }, 1)] : []),
    ],
  },
})
