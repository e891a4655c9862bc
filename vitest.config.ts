import { defineConfig } from 'vitest/config'
import { importBuild } from './test/support/build-plugin.ts'
import { LongestFirst } from './test/support/longest-first.ts'
import { filesMarked, isGate } from './test/support/marks.ts'
import { preferBuild } from './test/support/script-flags.ts'
import { createTestLog } from './test/support/test-log.ts'

const servers = process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL
/**
 * In the gate: without files of the second tier, and with servers each integration file on one backend, but those
 * marked. Without it all files are there, so that each can be run by its name.
 */
const notInGate = isGate ? filesMarked('tier: all') : []
const onBuild = isGate && preferBuild()
const { MASON_TEST_LOG: log, MASON_TEST_WORKERS: workers } = process.env

// isolate: false loads each module once a worker and not once a file, a third of all CPU: no code here keeps module state
const integration = (name: 'embedded' | 'served', include = ['test/integration/**/*.test.ts']) => ({
  extends: true as const,
  test: {
    name,
    include,
    exclude: notInGate,
    globalSetup: [`test/support/setup-${name}.ts`],
    env: { MASON_TEST_BACKEND: name },
    isolate: false,
  },
})

/** Those that start processes of their own. */
const processes = (name: string, include: string) => ({
  extends: true as const,
  test: {
    name,
    include: [include],
    exclude: notInGate,
    globalSetup: ['test/support/setup-process.ts'],
    testTimeout: 300_000,
    isolate: false,
  },
})

export default defineConfig({
  plugins: onBuild ? [importBuild()] : [],
  test: {
    // each project transforms the same files: once for all
    experimental: { fsModuleCache: isGate },
    ...(log && { reporters: ['default', createTestLog(log)] }),
    sequence: { sequencer: LongestFirst },
    setupFiles: ['test/support/setup-seed.ts'],
    // limits are for what hangs: no verdict depends on them
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 90_000 } },
    // of two cores: others compute while some wait for servers and processes
    maxWorkers: workers ? Number(workers) : 4,
    // what `mason-runtime` means inside this package: the build, as it is
    server: { deps: { external: [/\/dist\/src\//] } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/integration/**', 'test/process/**', 'test/console/**', ...notInGate],
          isolate: false,
        },
      },
      integration(
        'embedded',
        isGate && servers ? filesMarked('backends: both', 'test/integration') : undefined,
      ),
      ...(servers ? [integration('served')] : []),
      processes('process', 'test/process/**/*.test.ts'),
      processes('console', 'test/console/**/*.test.ts'),
    ],
  },
})
