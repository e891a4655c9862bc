import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Runtime } from '../../src/runtime-api.ts'
import { type Backend, openBackend } from '../support/backend.ts'
import { until, within } from '../support/spine.ts'
import { openTestRuntime } from '../support/test-runtime.ts'

/** Whole runtimes on one database; embedded there is only one process, and it follows itself. */

let backend: Backend
const opened: Runtime[] = []

beforeAll(async () => {
  backend = await openBackend()
})
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.close()
})
afterAll(async () => {
  await backend?.drop()
})

const open = async (config: Partial<Backend['config']> = {}): Promise<Runtime> => {
  const runtime = await openTestRuntime(
    { ...backend, config: { ...backend.config, ...config } },
    { worker: false },
  )
  opened.push(runtime)
  return runtime
}

/** A runtime in which an admin changes things, and one that should see it. */
const two = async (config: Partial<Backend['config']>): Promise<[Runtime, Runtime]> => {
  const mine = await open(config)
  return [mine, backend.kind === 'served' ? await open(config) : mine]
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
    capabilities: [],
    status: 'active',
  })
  return { scope, id: model.id }
}

const namesIn = ({ modelService }: Runtime): string[] => modelService.list().map(({ name }) => name)

const ways: [string, () => Partial<Backend['config']>][] = [
  ['with all servers up', () => ({})],
  ['with Redis down', () => (backend.kind === 'served' ? { redisUrl: 'redis://127.0.0.1:1' } : {})],
]

describe.each(ways)('%s', (way, config) => {
  test('a change by an admin takes effect on every process within 2 s', async () => {
    const [mine, theirs] = await two(config())
    const name = way.replaceAll(' ', '-')
    const seen = (fact: () => void) => within(2000, fact)

    const { scope, id } = await addModel(mine, name)
    expect(namesIn(mine)).toContain(name)
    await seen(() => expect(namesIn(theirs)).toContain(name))
    expect(theirs.models.knows(name)).toBe(true)

    await mine.admin.registry.models.change(scope, id, { status: 'disabled' })
    expect(namesIn(mine)).not.toContain(name)
    await seen(() => expect(namesIn(theirs)).not.toContain(name))

    await mine.admin.registry.models.remove(scope, id)
    await seen(() => expect(theirs.models.knows(name)).toBe(false))
  })
})

describe('the settings of a process', () => {
  test('serve it by themselves, beside those of another one', async () => {
    const openai = { apiKey: 'sk-1', baseUrl: null, model: 'gpt-one', embeddingModel: 'embed-one' }
    const mine = await open({ openai })
    expect(namesIn(mine)).toEqual(expect.arrayContaining(['gpt-one', 'embed-one']))
    expect(mine.models.describe()).toMatchObject({ offline: false })
    if (backend.kind === 'embedded') return
    const theirs = await open({ openai: { ...openai, model: 'gpt-two' } })
    const none = await open()
    expect(namesIn(theirs)).toContain('gpt-two')
    expect(namesIn(none)).toContain('mason-offline')
    expect(none.models.describe()).toMatchObject({ offline: true })
    await addModel(mine, 'seen-by-all')
    await until('the third sees it too', () => namesIn(none).includes('seen-by-all'))
    expect(namesIn(mine)).toEqual(expect.arrayContaining(['gpt-one', 'seen-by-all']))
  })
})
