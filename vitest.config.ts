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

const unitFiles = ['test/*.test.ts', 'test/!(integration|process|console)/**/*.test.ts']
const processFiles = ['test/process/**/*.test.ts', 'test/console/**/*.test.ts']

type Project = { include: string[]; setups?: readonly string[]; backend?: 'embedded' | 'served' }

// isolate: false loads each module once a worker and not once a file, a third of all CPU: no code here keeps module state
const project = (name: string, { include, setups = [], backend }: Project) => ({
  extends: true as const,
  test: {
    ...{ name, include, exclude: notInGate, isolate: false },
    globalSetup: setups.map((one) => `test/support/setup-${one}.ts`),
    ...(backend && { env: { MASON_TEST_BACKEND: backend } }),
    ...(setups.includes('process') && { testTimeout: 300_000 }),
  },
})
const integration = (
  backend: 'embedded' | 'served',
  include = ['test/integration/**/*.test.ts'],
  setups: readonly string[] = [],
) => project(backend, { include, setups: [backend, ...setups], backend })

/** A project for each kind of tests, by which they are run alone. */
const projects = () => [
  project('unit', { include: unitFiles }),
  integration('embedded'),
  ...(servers ? [integration('served')] : []),
  project('process', { include: processFiles.slice(0, 1), setups: ['process'] }),
  project('console', { include: processFiles.slice(1), setups: ['process'] }),
]

/** Each worker process belongs to one project, and loads all of Mason anew: the gate has two projects, so eight of them and not nineteen. */
const gateProjects = () =>
  servers
    ? [
        integration('embedded', [...filesMarked('backends: both', 'test/integration'), ...unitFiles]),
        integration('served', ['test/integration/**/*.test.ts', ...processFiles], ['process']),
      ]
    : [
        integration('embedded', ['test/integration/**/*.test.ts', ...unitFiles]),
        project('process', { include: processFiles, setups: ['process'] }),
      ]

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
    projects: isGate ? gateProjects() : projects(),
  },
})
