import { onTestFinished, vi } from 'vitest'
import type { AppOptions } from '../../src/server/app.ts'
import { createFakeRuntime, type FakeRuntime } from '../support/fake-runtime.ts'
import { startServer, type TestServer } from '../support/http.ts'

export const body = { prompt: 'What is 2 + 2?', user_id: 'u1' }

/** Waits for a fact that is only under way; the second that vitest would give it is too short for a busy machine. */
export const eventually = <Found>(look: () => Found | Promise<Found>): Promise<unknown> =>
  vi.waitUntil(look, { timeout: 30_000, interval: 10 })

/** A server over a fake runtime, closed when the test is over. Auth is off unless the test says otherwise. */
export const serve = async (
  options: Partial<AppOptions> = {},
): Promise<{ server: TestServer; fake: FakeRuntime }> => {
  const fake = createFakeRuntime()
  const server = await startServer({ runtime: fake.runtime, auth: 'off', ...options })
  onTestFinished(() => server.close())
  return { server, fake }
}

/** A server where `all`, `submitter`, `reader` and `boss` are tokens of business `acme`, `other` one of `globex`. */
export const serveGuarded = async (options: Partial<AppOptions> = {}) => {
  const setting = await serve({ auth: 'required', adminToken: 'the-admin', ...options })
  const roles: [token: string, business: string, ...roles: string[]][] = [
    ['all', 'acme', 'submit', 'read'],
    ['submitter', 'acme', 'submit'],
    ['reader', 'acme', 'read'],
    ['boss', 'acme', 'admin'],
    ['other', 'globex', 'submit', 'read'],
  ]
  for (const [token, business_id, ...granted] of roles)
    setting.fake.tokens.set(token, { business_id, roles: granted })
  return setting
}
