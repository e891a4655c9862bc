// backends: either

import { expect } from 'vitest'
import { readRegistryVersion } from '../../../src/models/registry/registry-rows.ts'
import { startAgentServer } from '../../support/agent-servers.ts'
import { unique } from '../../support/backend.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { newProvider, publishPaymentKeys } from '../../support/payments.ts'
import { say } from '../../support/script.ts'

/** What runs of a process keep of what admins set: a change holds for the next run. */

const test = runtimeTest
  .extend(
    'agent',
    { scope: 'file' },
    closing(() => startAgentServer('1.0')),
  )
  /** A change, which raises the version that other processes poll. */
  .extend(
    'admin',
    { scope: 'file' },
    ({ server, database }) =>
      async (method: string, path: string, json?: object) => {
        const version = await readRegistryVersion(database)
        const { status, body, text } = await server.call(method, `/admin/v1${path}`, {
          token: adminToken,
          ...(json && { json }),
        })
        expect(status, text).toBeLessThan(300)
        if (path !== '/businesses') expect(await readRegistryVersion(database)).toBeGreaterThan(version)
        return body as { id: string }
      },
  )
  /** The tools of these that the next run of a business is offered. */
  .extend('offered', { scope: 'file' }, ({ model, runtime }) => async (business: string) => {
    say(model, { planner: [{ text: 'Done.' }] })
    await runtime.complete({ prompt: 'Go on' }, { business })
    const tools = JSON.stringify(model.requests('planner').at(-1)?.tools ?? [])
    return ['call_agent', 'create_payment_mandate', 'http_request'].filter((name) =>
      tools.includes(`"${name}"`),
    )
  })

test('the next run sees what an admin has added, changed and removed', async ({
  admin,
  agent,
  backend,
  database,
  offered,
}) => {
  await publishPaymentKeys(backend, database)
  const { id } = await admin('POST', '/businesses', { id: unique('shop') })
  expect(await offered(id)).toEqual([])

  const { id: agentId } = await admin('POST', `/businesses/${id}/agents`, {
    name: 'shop',
    card_url: agent.url,
  })
  expect(await offered(id)).toEqual(['call_agent'])
  const { id: provider } = await admin('POST', '/providers', newProvider({ business_ids: [id] }))
  await admin('PATCH', `/businesses/${id}`, { http_hosts: [{ host: 'api.example' }] })
  expect(await offered(id)).toEqual(['call_agent', 'create_payment_mandate', 'http_request'])

  await admin('PATCH', `/providers/${provider}`, { business_ids: ['default'] })
  expect(await offered(id)).toEqual(['call_agent', 'http_request'])
  await admin('PATCH', `/providers/${provider}`, { business_ids: [id] })
  expect(await offered(id)).toEqual(['call_agent', 'create_payment_mandate', 'http_request'])
  await admin('POST', `/providers/${provider}/end`)
  await admin('DELETE', `/businesses/${id}/agents/${agentId}`)
  await admin('PATCH', `/businesses/${id}`, { http_hosts: [] })
  expect(await offered(id)).toEqual([])
})

test('of the settings of a business, the hosts alone raise the version', async ({ database, server }) => {
  const http_hosts = [{ host: 'api.example', headers: { 'x-shop': 'one' } }]
  const id = unique('shop')
  const call = async (method: string, path: string, json: object) => {
    const { status, text } = await server.call(method, `/admin/v1${path}`, { token: adminToken, json })
    expect(status, text).toBeLessThan(300)
    return readRegistryVersion(database)
  }
  const version = await call('POST', '/businesses', { id, http_hosts })
  const change = (json: object) => call('PATCH', `/businesses/${id}`, json)
  expect(await change({ quotas: { queued_runs: 7 } })).toBe(version)
  expect(await change({ learning: false, recall: false })).toBe(version)
  expect(await change({ http_hosts })).toBe(version)
  expect(await change({ http_hosts: [] })).toBe(version + 1)
})

test('a change by another process is seen without a hint', async ({ admin, database, offered }) => {
  const { id } = await admin('POST', '/businesses', { id: unique('shop') })
  await admin('PATCH', `/businesses/${id}`, { http_hosts: [{ host: 'api.example' }] })
  expect(await offered(id)).toEqual(['http_request'])
  await database.query("UPDATE businesses SET http_hosts = '[]' WHERE tenant = $1", [id])
  await expect.poll(() => offered(id)).toEqual([])
})
