import { test as base } from 'vitest'
import type { Config } from '../../src/infra/config/config.ts'
import type { Models } from '../../src/state/ports/models.ts'
import { openBackend } from './backend.ts'
import { startFakeModel } from './fake-model/fake-model.ts'
import { startServer } from './http.ts'
import { openWithDatabase } from './runs.ts'
import { fakeModels } from './test-runtime.ts'

/**
 * How a file opens its runtime. Without `models` it calls the fake model, with null those of the registry; `config`
 * replaces settings of the backend's.
 */
export type RuntimeFixtureOptions = Omit<NonNullable<Parameters<typeof openWithDatabase>[1]>, 'models'> & {
  models?: Models | null
  config?: Partial<Config>
}

/** The admin token of the `server` fixture. */
export const adminToken = 'the-admin-token-of-this-test'

/** A fixture that `start` opens and that is closed after the last test of its scope. */
export const closing =
  <T extends { close(): unknown } | AsyncDisposable>(start: () => T | Promise<T>) =>
  async ({}: object, { onCleanup }: { onCleanup(close: () => unknown): void }): Promise<T> => {
    const opened = await start()
    onCleanup(() => ('close' in opened ? opened.close() : opened[Symbol.asyncDispose]()))
    return opened
  }

/**
 * A test on a backend of its file's own. Each fixture opens when a test of the file first names it and closes after the
 * file's last test, in reverse order. `database` is the database alone; `elsewhere` is a second connection to it where
 * the backend has one.
 */
export const test = base
  .extend('backend', { scope: 'file' }, async ({}, { onCleanup }) => {
    const backend = await openBackend()
    onCleanup(() => backend.drop())
    return backend
  })
  .extend('database', { scope: 'file' }, async ({ backend }, { onCleanup }) => {
    const database = await backend.openDatabase()
    onCleanup(() => database.close())
    return database
  })
  .extend('elsewhere', { scope: 'file' }, async ({ backend, database }, { onCleanup }) => {
    if (backend.kind === 'embedded') return database
    const elsewhere = await backend.openDatabase()
    onCleanup(() => elsewhere.close())
    return elsewhere
  })
  .extend('model', { scope: 'file' }, closing(startFakeModel))

/**
 * A test with a runtime and its worker; `database` is the runtime's own, `server` serves it with the admin token.
 * A file with other options extends `runtimeOptions`.
 */
export const runtimeTest = test
  .extend('runtimeOptions', { scope: 'file' }, (): RuntimeFixtureOptions => ({}))
  .extend('opened', { scope: 'file' }, async ({ backend, model, runtimeOptions }, { onCleanup }) => {
    const { config, models = fakeModels(model.baseUrl), ...options } = runtimeOptions
    const opened = await openWithDatabase(
      { ...backend, config: { ...backend.config, ...config } },
      { ...options, ...(models && { models }) },
    )
    onCleanup(() => opened.runtime.close())
    return opened
  })
  .extend('runtime', { scope: 'file' }, ({ opened }) => opened.runtime)
  .extend('database', { scope: 'file' }, ({ opened }) => opened.database)
  .extend('server', { scope: 'file' }, async ({ runtime }, { onCleanup }) => {
    const server = await startServer({ runtime, auth: 'required', adminToken })
    onCleanup(() => server.close())
    return server
  })
