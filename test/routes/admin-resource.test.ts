// backends: either

import { describe, expect } from 'vitest'
import { z } from 'zod'
import { ofBusiness } from '../../src/accounts/businesses.ts'
import { databaseRef } from '../../src/features/core.ref.ts'
import { defineResource } from '../../src/features/define-resource.ts'
import { defineFeature } from '../../src/features/definitions.ts'
import { openFeatures, provide } from '../../src/features/load-features.ts'
import { businessQuery } from '../../src/routes/parameters.ts'
import { labelSchema, toChangeSchema, toViewSchema } from '../../src/state/resource-schema.ts'
import { businessIdSchema } from '../../src/state/run-request.ts'
import { asOwner } from '../support/as-owner.ts'
import { unique } from '../support/backend.ts'
import { createFakeRuntime } from '../support/fake-runtime.ts'
import { startServer } from '../support/http.ts'
import { adminToken, test as base } from '../support/integration-test.ts'

const input = z.strictObject({
  business_id: businessIdSchema.default('default'),
  name: labelSchema,
  text: z.string().nullable().default(null),
})

/** All of an admin resource: what docs/features.md shows. */
const announcements = defineResource({
  path: '/admin/v1/announcements',
  one: 'an announcement',
  many: 'announcements',
  input: input.meta({ examples: [{ name: 'Holidays' }] }),
  change: toChangeSchema(input.pick({ name: true, text: true })).meta({ examples: [{ text: 'Open' }] }),
  view: toViewSchema(input.shape),
  filter: businessQuery,
  ...ofBusiness,
  prefix: 'ann',
  table: 'announcements',
  idColumn: 'announcement_id',
})

const test = base.extend('call', { scope: 'file' }, async ({ backend, database }, { onCleanup }) => {
  await asOwner(
    backend,
    database,
    `CREATE TABLE mason.announcements (tenant text NOT NULL, announcement_id text PRIMARY KEY, name text NOT NULL UNIQUE, text text,
       created_at timestamptz NOT NULL DEFAULT clock_timestamp(), updated_at timestamptz NOT NULL DEFAULT clock_timestamp());
     GRANT SELECT, INSERT, UPDATE, DELETE ON mason.announcements TO mason_worker`,
  )
  const files = {
    'feature.ts': async () => ({ default: defineFeature({ id: 'news', tables: ['announcements'] }) }),
    'announcements.resource.ts': async () => ({ default: announcements }),
  }
  const { runtime } = createFakeRuntime()
  runtime.features = await openFeatures(
    [{ folder: 'features/news', files }],
    [provide(databaseRef, database)],
  )
  const server = await startServer({ runtime, auth: 'required', adminToken })
  onCleanup(() => server.close())
  return (method: string, path: string, json?: object) =>
    server.call(method, path, { token: adminToken, ...(json && { json }) })
})
const path = '/admin/v1/announcements'

describe('a resource of a feature', () => {
  test('is created, listed by business, changed and deleted by its schemas and its table', async ({
    call,
  }) => {
    const business_id = unique('news')
    const [first, second] = [unique('Holidays'), unique('Sale')]
    const created = await call('POST', path, { business_id, name: first, text: 'Closed' })
    expect([created.status, created.headers.get('location')]).toEqual([201, `${path}/${created.body.id}`])
    expect(created.body).toMatchObject({ business_id, name: first, text: 'Closed' })
    expect(created.body.id).toMatch(/^ann_[0-9a-f]{24}$/)
    const other = (await call('POST', path, { business_id, name: second })).body
    const elsewhere = (await call('POST', path, { name: unique('Other') })).body
    expect(elsewhere.business_id).toBe('default')

    const page = (await call('GET', `${path}?business_id=${business_id}&limit=1`)).body
    expect(page.data).toEqual([other])
    const rest = await call('GET', `${path}?business_id=${business_id}&limit=1&cursor=${page.next_cursor}`)
    expect(rest.body).toEqual({ data: [created.body], next_cursor: null })

    const changed = (await call('PATCH', `${path}/${created.body.id}`, { text: null })).body
    expect(changed).toMatchObject({ name: first, text: null, created_at: created.body.created_at })
    expect(changed.updated_at >= created.body.updated_at).toBe(true)
    expect((await call('GET', `${path}/${created.body.id}`)).body).toEqual(changed)
    expect((await call('DELETE', `${path}/${created.body.id}`)).status).toBe(204)
    const missing = await call('GET', `${path}/${created.body.id}`)
    expect(missing.body).toMatchObject({
      code: 'not_found',
      detail: `there is no announcement "${created.body.id}"`,
      remedy: 'GET /admin/v1/announcements lists the announcements',
    })
  })

  test('is refused where its name is taken, and where its body has another field', async ({ call }) => {
    const name = unique('Taken')
    expect((await call('POST', path, { name })).status).toBe(201)
    const taken = await call('POST', path, { name })
    expect([taken.status, taken.body.errors]).toEqual([409, [{ pointer: '/name', detail: 'is taken' }]])
    const unknown = await call('POST', path, { name: unique('Other'), colour: 'red' })
    expect(unknown.body.errors).toEqual([{ pointer: '/colour', detail: 'unknown field' }])
  })

  test('is in the OpenAPI document', async ({ call }) => {
    const { paths } = (await call('GET', '/openapi.json')).body
    expect(Object.keys(paths[path])).toEqual(['get', 'post'])
    expect(paths[`${path}/{id}`].patch.operationId).toBe('changeAnnouncement')
  })
})
