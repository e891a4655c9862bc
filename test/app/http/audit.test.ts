import { expect, it } from 'vitest'
import { isRead } from '../../../src/app/http/plumbing/auth.ts'
import { listBodies } from '../../support/openapi.ts'
import { serveGuarded } from './test-server.ts'

it('every route with which an admin changes something is logged, whatever it is', async () => {
  const { server, fake } = await serveGuarded()
  const { body: document } = await server.call('GET', '/openapi.json')
  const bodies = new Map(listBodies(document).map((body) => [body.operation, body.examples[0]]))
  const operations = Object.entries<Record<string, { operationId: string }>>(document.paths).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({
        ...{ path, operationId, method: method.toUpperCase() },
      })),
  )
  const changes = operations.filter(({ path, method }) => path.startsWith('/admin/') && !isRead(method))
  expect(changes.length).toBeGreaterThan(60)
  for (const { path, method, operationId } of changes) {
    fake.audited.length = 0
    const json = bodies.get(`${method} ${path}`)
    const query = path.includes('/users') || path.includes('/schedules') ? '?business_id=acme' : ''
    const address = path.replace(/\{\w+\}/g, 'x1')
    const { headers, text } = await server.call(method, address + query, {
      token: 'the-admin',
      ...(json !== undefined && { json }),
    })
    expect(fake.audited, `${method} ${path}: ${text}`).toMatchObject([
      {
        ...{ operation: operationId, resource: address, token_id: null, token_label: 'MASON_ADMIN_TOKEN' },
        ...{ address: '127.0.0.1', request_id: headers.get('x-request-id') },
        fields: Object.keys(json ?? {}).length > 0 ? expect.arrayContaining(Object.keys(json)) : [],
      },
    ])
  }
  fake.audited.length = 0
  for (const { path } of operations.filter(
    ({ path, method }) => path.startsWith('/admin/') && isRead(method),
  ))
    await server.call('GET', path.replace(/\{\w+\}/g, 'x1'), { token: 'the-admin' })
  expect(fake.audited).toEqual([])
})
