import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import type { Runtime } from '../../src/app/api.ts'
import { createClosers } from '../../src/infra/lib/closers.ts'
import {
  endpointInputSchema,
  keyInputSchema,
  modelInputSchema,
  vendorInputSchema,
} from '../../src/models/schemas/catalog.ts'
import type { Log } from '../../src/state/ports/log.ts'
import type { Sql } from '../../src/state/ports/sql.ts'
import type { Backend } from '../../test/support/backend.ts'
import { openOwnServers } from '../../test/support/processes.ts'
import { openSql, type WatchedRedis, watchRedis } from '../../test/support/registry-canary.ts'
import { until } from '../../test/support/runs.ts'
import { openTestRuntime } from '../../test/support/test-runtime.ts'
import { quickWaits } from '../../test/support/vendors.ts'

/** So short that a stall costs seconds and not minutes; a busy machine still keeps them. */
export const clocks = { first_byte_ms: 3000, idle_ms: 3000, total_ms: 9000 }

/** Two runtimes on one database and one Redis, and everything that a canary is looked for in. */
export type Stage = AsyncDisposable & {
  backend: Backend
  runtimes: readonly [Runtime, Runtime]
  /** As the superuser, past all roles and policies. */
  sql: Sql
  redis: WatchedRedis
  /** What the runtimes logged, and what was shown to callers, as text. */
  output: string[]
  show(value: unknown): void
  secrets: string[]
}

export const openStage = async (): Promise<Stage> => {
  const output: string[] = []
  const show = (value: unknown): void => void output.push(inspect(value, { depth: 20, showHidden: true }))
  const take = (data: unknown, message: string): void => show([message, data])
  const log: Log = { debug: take, info: take, warn: take, error: take }
  const opened = createClosers()
  try {
    const backend = await openOwnServers()
    opened.add(() => backend.drop())
    if (backend.config.database.kind !== 'postgres') throw new Error('these are no servers')
    const sql = await openSql(backend.config.database.url)
    opened.add(async () => sql[Symbol.asyncDispose]())
    const redis = await watchRedis(backend.config.redisUrl ?? '', backend.config.queuePrefix)
    opened.add(async () => redis[Symbol.asyncDispose]())
    const open = async (): Promise<Runtime> => {
      const runtime = await openTestRuntime(backend, { worker: false, modelRetryDelays: quickWaits, log })
      opened.add(() => runtime.close())
      return runtime
    }
    const runtimes = [await open(), await open()] as const
    const close = (): Promise<void> => opened.close()
    return { backend, runtimes, sql, redis, output, show, secrets: [], [Symbol.asyncDispose]: close }
  } catch (error) {
    await opened.close()
    throw error
  }
}

type NewVendor = {
  name: string
  baseUrl: string
  /** The built-in format of an endpoint that speaks `http`; absent: it speaks `openai`. */
  format?: string
  /** By label; each granted to the business of that name, where `granted`. */
  keys: readonly string[]
  granted?: boolean
  limits?: Record<string, unknown>
  timeouts?: Record<string, number>
}

export type VendorSetup = { id: string; model: string; keys: { id: string; label: string; secret: string }[] }

/** A vendor with one model of the same name, put in as an admin does; resolves once both runtimes know it. */
export const addVendor = async (stage: Stage, options: NewVendor): Promise<VendorSetup> => {
  const { name, baseUrl, format, keys, granted = false, limits = {}, timeouts = clocks } = options
  const { registry } = stage.runtimes[0].admin
  const vendor = await registry.vendors.create({}, vendorInputSchema.parse({ name }))
  const scope = { vendor_id: vendor.id }
  const made: VendorSetup['keys'] = []
  for (const label of keys) {
    const secret = `sk-canary-${randomBytes(16).toString('hex')}`
    stage.secrets.push(secret)
    const key = await registry.keys.create(scope, keyInputSchema.parse({ label, secret, limits }))
    if (granted) await registry.grants.create({}, { key_id: key.id, business_id: label })
    made.push({ id: key.id, label, secret })
  }
  const header = `canary-tenant-${randomBytes(16).toString('hex')}`
  stage.secrets.push(header)
  const endpoint = await registry.endpoints.create(
    scope,
    endpointInputSchema.parse({
      name,
      base_url: baseUrl,
      protocol: format === undefined ? 'openai' : 'http',
      headers: { 'x-tenant': header },
      timeouts,
    }),
  )
  const formats = format === undefined ? [] : (await registry.formats.list({}, { limit: 100 })).data
  const response_format_id = formats.find((one) => one.name === format)?.id
  await registry.models.create(
    scope,
    modelInputSchema.parse({
      name,
      upstream_name: `${name}-up`,
      endpoint_id: endpoint.id,
      response_format_id,
    }),
  )
  await until(`both runtimes know ${name}`, () =>
    stage.runtimes.every(({ modelService }) => modelService.list().some((one) => one.name === name)),
  )
  return { id: vendor.id, model: name, keys: made }
}
