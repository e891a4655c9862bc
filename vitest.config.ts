import { defineConfig } from 'vitest/config'
import { importBuild } from './test/support/build-plugin.ts'
import { LongestFirst } from './test/support/longest-first.ts'
import { filesMarked, findIntegrationFiles, isGate } from './test/support/marks.ts'
import { preferBuild } from './test/support/script-flags.ts'
import { createTestLog } from './test/support/test-log.ts'

const servers = process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL
/**
 * In the gate: without files of the second tier, and with servers each integration file on one backend, but those
 * marked `both`. Without it all files are there, so that each can be run by its name.
 */
const notInGate = isGate ? filesMarked('tier: all') : []
const onBuild = isGate && preferBuild()
const { MASON_TEST_LOG: log, MASON_TEST_WORKERS: workers } = process.env

const integrationFiles = findIntegrationFiles()
const unitFiles = ['test/*.test.ts', 'test/!(process|console)/**/*.test.ts']
const processFiles = ['test/process/**/*.test.ts', 'test/console/**/*.test.ts']

type Project = {
  include: readonly string[]
  exclude?: readonly string[]
  setups?: readonly string[]
  backend?: 'embedded' | 'served'
}

// isolate: false loads each module once a worker and not once a file, a third of all CPU: no code here keeps module state
const project = (name: string, { include, exclude = [], setups = [], backend }: Project) => ({
  extends: true as const,
  test: {
    ...{ name, include: [...include], exclude: [...notInGate, ...exclude], isolate: false },
    globalSetup: setups.map((one) => `test/support/setup-${one}.ts`),
    ...(backend && { env: { MASON_TEST_BACKEND: backend } }),
    ...(setups.includes('process') && { testTimeout: 300_000 }),
  },
})
const integration = (
  backend: 'embedded' | 'served',
  include = integrationFiles,
  exclude: readonly string[] = [],
  setups: readonly string[] = [],
) => project(backend, { include, exclude, setups: [backend, ...setups], backend })

/** A project for each kind of tests, by which they are run alone. */
const projects = () => [
  project('unit', { include: unitFiles, exclude: integrationFiles }),
  integration('embedded'),
  ...(servers ? [integration('served')] : []),
  project('process', { include: processFiles.slice(0, 1), setups: ['process'] }),
  project('console', { include: processFiles.slice(1), setups: ['process'] }),
]

/** Each worker process belongs to one project, and loads all of Mason anew: the gate has two projects, so eight of them and not nineteen. */
const gateProjects = () =>
  servers
    ? [
        integration('embedded', unitFiles, filesMarked('backends: either')),
        integration('served', [...integrationFiles, ...processFiles], [], ['process']),
      ]
    : [integration('embedded', unitFiles), project('process', { include: processFiles, setups: ['process'] })]

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
