import { onTestFinished, vi } from 'vitest'
import type { AppOptions } from '../../../src/app/http/app.ts'
import { createFakeRuntime, type FakeRuntime } from '../../support/fake-runtime.ts'
import { startServer, type TestServer } from '../../support/http.ts'

export const body = { prompt: 'What is 2 + 2?', user_id: 'u1' }

/** Waits until a condition holds; the default second of vitest is too short for a busy machine. */
export const eventually = <Value>(check: () => Value | Promise<Value>): Promise<unknown> =>
  vi.waitUntil(check, { timeout: 90_000, interval: 10 })

/** A server over a fake runtime, closed when the test is over. Auth is off unless the test says otherwise. */
export const serve = async (
  options: Partial<AppOptions> = {},
): Promise<{ server: TestServer; fake: FakeRuntime }> => {
  const opened = await openServer(options)
  onTestFinished(() => opened.server.close())
  return opened
}

/** The same as `serve`, for the caller to close. */
export const openServer = async (options: Partial<AppOptions> = {}) => {
  const fake = createFakeRuntime()
  return { server: await startServer({ runtime: fake.runtime, auth: 'off', ...options }), fake }
}

/** A server where `all`, `submitter`, `reader` and `boss` are tokens of business `acme`, `other` one of `globex`. */
export const serveGuarded = async (options: Partial<AppOptions> = {}) => {
  const setup = await openGuarded(options)
  onTestFinished(() => setup.server.close())
  return setup
}

/** The same, for the caller to close. */
export const openGuarded = async (options: Partial<AppOptions> = {}) => {
  const setup = await openServer({ auth: 'required', adminToken: 'the-admin', ...options })
  const roles: [token: string, business: string, ...roles: string[]][] = [
    ['all', 'acme', 'submit', 'read'],
    ['submitter', 'acme', 'submit'],
    ['reader', 'acme', 'read'],
    ['boss', 'acme', 'admin'],
    ['other', 'globex', 'submit', 'read'],
  ]
  for (const [token, business_id, ...granted] of roles)
    setup.fake.tokens.set(token, { business_id, roles: granted })
  return setup
}
