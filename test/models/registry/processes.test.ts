// backends: either

import { afterEach, describe, expect, vi } from 'vitest'
import type { Runtime } from '../../../src/app/api.ts'
import type { Backend } from '../../support/backend.ts'
import { runtimeTest as test } from '../../support/integration-test.ts'
import { until } from '../../support/runs.ts'
import { openTestRuntime } from '../../support/test-runtime.ts'

/** Whole runtimes on one database; embedded there is only one process, and it follows itself. */

const opened: Runtime[] = []

afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.close()
})

const open = async (backend: Backend, config: Partial<Backend['config']> = {}): Promise<Runtime> => {
  const runtime = await openTestRuntime(
    { ...backend, config: { ...backend.config, ...config } },
    { worker: false },
  )
  opened.push(runtime)
  return runtime
}

/** A runtime in which an admin changes things, and one that should see it. */
const two = async (backend: Backend, config: Partial<Backend['config']>): Promise<[Runtime, Runtime]> => {
  const mine = await open(backend, config)
  return [mine, backend.kind === 'served' ? await open(backend, config) : mine]
}

const addModel = async ({ admin: { registry } }: Runtime, name: string) => {
  const vendor = await registry.vendors.create({}, { name: `vendor of ${name}`, status: 'active' })
  const scope = { vendor_id: vendor.id }
  const endpoint = await registry.endpoints.create(scope, {
    name: 'main',
    base_url: 'https://vendor.example/v1',
    protocol: 'openai',
    categories: [],
    headers: {},
    timeouts: {},
    status: 'active',
  })
  const model = await registry.models.create(scope, {
    name,
    upstream_name: name,
    category: 'text',
    endpoint_id: endpoint.id,
    dialect: 'tools',
    refuses_stop: false,
    continuation: 'none',
    capabilities: [],
    status: 'active',
  })
  return { scope, id: model.id }
}

const namesIn = ({ modelService }: Runtime): string[] => modelService.list().map(({ name }) => name)

const ways: [string, (backend: Backend) => Partial<Backend['config']>][] = [
  ['with all servers up', () => ({})],
  ['with Redis down', (backend) => (backend.kind === 'served' ? { redisUrl: 'redis://127.0.0.1:1' } : {})],
]

describe.each(ways)('%s', (way, config) => {
  test('a change by an admin takes effect on every process', async ({ backend }) => {
    const [mine, theirs] = await two(backend, config(backend))
    const name = way.replaceAll(' ', '-')
    const seen = (fact: () => void) => vi.waitFor(fact, { timeout: 90_000 })

    const { scope, id } = await addModel(mine, name)
    expect(namesIn(mine)).toContain(name)
    await seen(() => expect(namesIn(theirs)).toContain(name))
    expect(theirs.models.hasModel(name)).toBe(true)

    await mine.admin.registry.models.change(scope, id, { status: 'disabled' })
    expect(namesIn(mine)).not.toContain(name)
    await seen(() => expect(namesIn(theirs)).not.toContain(name))

    await mine.admin.registry.models.remove(scope, id)
    await seen(() => expect(theirs.models.hasModel(name)).toBe(false))
  })
})

describe('the settings of a process', () => {
  test('serve it by themselves, beside those of another one', async ({ backend }) => {
    const openai = { apiKey: 'sk-1', baseUrl: null, model: 'gpt-one', embeddingModel: 'embed-one' }
    const mine = await open(backend, { openai })
    expect(namesIn(mine)).toEqual(expect.arrayContaining(['gpt-one', 'embed-one']))
    expect(mine.models.describe()).toMatchObject({ capabilities: [] })
    if (backend.kind === 'embedded') return
    const theirs = await open(backend, { openai: { ...openai, model: 'gpt-two' } })
    const none = await open(backend)
    expect(namesIn(theirs)).toContain('gpt-two')
    expect(namesIn(none)).toContain('mason-offline')
    expect(none.models.describe()).toMatchObject({ capabilities: ['rules-only'] })
    await addModel(mine, 'seen-by-all')
    await until('the third sees it too', () => namesIn(none).includes('seen-by-all'))
    expect(namesIn(mine)).toEqual(expect.arrayContaining(['gpt-one', 'seen-by-all']))
  })
})
