// backends: either

import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { rewrapRows } from '../../../src/app/cli/key-rotation.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { baseConfig } from '../../support/backend.ts'
import { askOf } from '../../support/http-call.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { deadline } from '../../support/test-runtime.ts'

const next = randomBytes(32).toString('base64')
const { masterKey } = baseConfig

// as in the first round of the restarts: it still writes under the old master key and can read the new one
const test = runtimeTest.extend(
  'runtimeOptions',
  { scope: 'file' },
  { models: null, worker: false, config: { masterKey, previousMasterKeys: [next] } },
)

const secretOf = (n: number): string => `sk-nightjar-${n}`

test('the master key is changed while fifty call models and an admin enters secrets, and no call fails', async ({
  model,
  database,
  runtime,
}) => {
  const { vendors, keys, endpoints, models } = runtime.admin.registry
  const { id: vendor_id } = await vendors.create({}, { name: 'one', status: 'active' })
  const scope = { vendor_id }
  const endpoint = await endpoints.create(scope, {
    name: 'chat',
    base_url: model.baseUrl,
    protocol: 'openai',
    categories: [],
    headers: { 'x-tenant': 'nightjar-tenant' },
    timeouts: {},
    status: 'active',
  })
  // the only one: were it unreadable for a moment, no other key could serve
  const key = await keys.create(scope, { label: 'k', secret: secretOf(0), limits: {}, status: 'active' })
  await models.create(scope, {
    name: 'chat',
    upstream_name: 'fake',
    category: 'text',
    endpoint_id: endpoint.id,
    dialect: 'tools',
    refuses_stop: false,
    continuation: 'none',
    capabilities: [],
    status: 'active',
  })

  const caller = { business_id: 'default', user_id: null, run_id: null }
  const ask = askOf({ role: 'output', messages: [{ role: 'user', content: 'hello' }] })
  let answered = 0
  let going = true
  const call = async (): Promise<void> => {
    const wanted = { role: 'output', model: 'chat' }
    const { attempts } = await runtime.modelService.ask(wanted, ask, caller, () => {}, deadline())
    expect(attempts).toEqual([])
    answered++
  }
  await call()
  const calling = Promise.all(
    Array.from({ length: 50 }, async () => {
      while (going) await call()
    }),
  )
  const entering = (async () => {
    for (let n = 1; going; n++) {
      await keys.rotate(scope, key.id, secretOf(n))
      await call()
    }
  })()
  const others = Promise.all([calling, entering]).finally(() => {
    going = false
  })
  const [there, back] = [createMasterKeys(next, [masterKey]), createMasterKeys(masterKey, [next])]
  let rewrapped = 0
  while (going && (answered < 150 || rewrapped < 20))
    for (const masterKeys of [there, back, there]) {
      const rotation = await rewrapRows(database, masterKeys, deadline())
      expect(rotation.unreadable).toEqual([])
      rewrapped += rotation.rewrapped
    }
  going = false
  await others
  await rewrapRows(database, there, deadline())
  await call()

  const { rows } = await database.query<{ master_key: string }>(
    'SELECT master_key FROM vendor_keys WHERE vendor_id = $1 UNION SELECT master_key FROM endpoints WHERE vendor_id = $1',
    [vendor_id],
  )
  expect(rows).toEqual([{ master_key: there.current().name }])
  for (const { headers } of model.requests())
    expect(headers).toMatchObject({
      authorization: expect.stringMatching(/^Bearer sk-nightjar-\d+$/),
      'x-tenant': 'nightjar-tenant',
    })
})
