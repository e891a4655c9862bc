import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { settingNames } from '../../src/infra/config/settings.ts'

type Compose = { services: Record<string, { environment?: Record<string, string | null> }> }

/** What a container of this file does not need: one login would do for all, embedded mode, a fixed port, and clients. */
const absent = ['DATABASE_URL', 'DATA_DIR', 'PORT', 'MASON_AUTH', 'MASON_URL', 'MASON_TOKEN']
/** The settings that only some of the processes get. */
const logins = ['MASON_API_DATABASE_URL', 'MASON_WORKER_DATABASE_URL', 'MASON_MIGRATE_URL']
/** What the executor of payments has alone. */
const executors = ['MASON_PAYMENT_DATABASE_URL', 'MASON_PAYMENT_KEY', 'MASON_PREVIOUS_PAYMENT_KEYS']

test('compose.yaml passes every setting to the process that reads it, and nothing that is no setting', async () => {
  const text = await readFile(join(import.meta.dirname, '..', '..', 'compose.yaml'), 'utf8')
  const { services } = parse(text, { merge: true }) as Compose
  const expected = settingNames.filter((name) => !absent.includes(name))
  // Node's own: docs/sizing.md
  delete services.api?.environment?.NODE_OPTIONS
  const passed = (...names: string[]) =>
    new Set(names.flatMap((name) => Object.keys(services[name]?.environment ?? {})))
  expect([...passed('api', 'worker', 'payments', 'migrate')].toSorted()).toEqual(expected.toSorted())
  for (const name of ['api', 'worker'])
    expect(
      expected.filter(
        (setting) => ![...logins, ...executors].includes(setting) && !passed(name).has(setting),
      ),
    ).toEqual([])
  expect(executors.filter((setting) => passed('api', 'worker').has(setting))).toEqual([])
  expect(executors.filter((setting) => !passed('payments').has(setting))).toEqual([])
})
