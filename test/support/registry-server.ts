import { createTokens } from '../../src/accounts/tokens.ts'
import { createUserAccounts } from '../../src/accounts/users.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { Registry } from '../../src/models/ports/model-ports.ts'
import type { RegistryOptions } from '../../src/models/registry/live-registry.ts'
import { createRegistryAdmin } from '../../src/models/registry/registry-admin.ts'
import type { ModelProbes } from '../../src/models/schemas/model-probe.ts'
import { type Backend, openBackend } from './backend.ts'
import { createFakeRuntime } from './fake-runtime.ts'
import { type Reply, startServer } from './http.ts'
import { openTestRegistry, registryOptions } from './registry.ts'
import { responseFormats } from './response-formats.ts'

const admin = 'the-admin-token-of-this-test'

/** The admin API over HTTP with the real registry on a real database; models themselves are not called. */
export type RegistryServer = {
  backend: Backend
  database: Database
  registry: { -readonly [Member in keyof Registry]: Registry[Member] }
  options: RegistryOptions
  url: string
  /** /openapi.json */
  document: { paths: Record<string, object> }
  /** Every answer so far, as text. */
  answers: string[]
  call(method: string, path: string, json?: unknown): Promise<Reply>
  /** Makes one and gives its id. */
  make(path: string, json: unknown): Promise<string>
  close(): Promise<void>
}

export const startRegistryServer = async (
  models: Partial<ModelProbes> = {},
  more: Partial<RegistryOptions> = {},
): Promise<RegistryServer> => {
  const backend = await openBackend()
  const database = await backend.openDatabase()
  const options = await registryOptions(database, {
    formats: [builtInFormat],
    ...more,
  })
  const registry = await openTestRegistry(database, options)
  const { runtime } = createFakeRuntime()
  const tokens = createTokens(database, systemClock)
  runtime.authenticate = (token) => tokens.authenticate(token)
  runtime.admin = {
    ...runtime.admin,
    tokens,
    users: createUserAccounts(database),
    registry: createRegistryAdmin({
      database,
      masterKeys: options.masterKeys,
      registry,
      hints: options.hints,
      models: { probe: async () => null, test: async () => null, ...models },
      formats: responseFormats,
    }),
  }
  const server = await startServer({ runtime, auth: 'required', adminToken: admin })
  const answers: string[] = []
  const call = async (method: string, path: string, json?: unknown): Promise<Reply> => {
    const reply = await server.call(method, `/admin/v1${path}`, {
      token: admin,
      ...(json !== undefined && { json }),
    })
    answers.push(reply.text)
    return reply
  }
  return {
    backend,
    database,
    registry,
    options,
    url: server.url,
    document: (await server.call('GET', '/openapi.json')).body,
    answers,
    call,
    async make(path, json) {
      const { status, body, text } = await call('POST', path, json)
      if (status !== 201) throw new Error(`POST ${path} gave ${status}: ${text}`)
      return body.id
    },
    async close() {
      await server.close()
      await registry[Symbol.asyncDispose]()
      await options.hints.close()
      await database.close()
      await backend.drop()
    },
  }
}

const builtInFormat = {
  name: 'brought along',
  category: 'text',
  paths: { text: 'answer', finish: 'why' },
  samples: [{ raw: { answer: 'hello', why: 'stop' }, expected: { text: 'hello' } }],
}
