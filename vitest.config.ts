import { defineConfig } from 'vitest/config'

const servers = process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL
const integration = (name: 'embedded' | 'served') => ({
  extends: true as const,
  test: {
    name,
    include: ['test/integration/**/*.test.ts'],
    globalSetup: [`test/support/setup-${name}.ts`],
    env: { MASON_TEST_BACKEND: name },
  },
})

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // two cores: more files at once only make each other late
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/integration/**', 'test/process/**'],
        },
      },
      integration('embedded'),
      ...(servers ? [integration('served')] : []),
      {
        extends: true,
        test: {
          name: 'process',
          include: ['test/process/**/*.test.ts'],
          testTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
