// backends: both

import { expect } from 'vitest'
import { signJob } from '../../../src/infra/queue/signed-jobs.ts'
import { unique } from '../../support/backend.ts'
import { deliver, openTestIntake } from '../../support/intake.ts'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'

const path = '/admin/v1/rejected-jobs'

test('a rejected job is listed, read, submitted again with or without a correction, and deleted', async ({
  runtime,
  database,
  server,
}) => {
  const call = (method: string, at: string, json?: unknown, token = adminToken) =>
    server.call(method, `${path}${at}`, { token, ...(json !== undefined && { json }) })
  const send = (id: string, data: unknown, secrets: string[] = []) =>
    deliver(openTestIntake(database, { secrets }), database, id, data)
  const business = unique('b')
  const good = { prompt: 'x', user_id: 'u', business_id: business, delay_ms: 60_000 }
  await runtime.of(business).submit({ prompt: 'x', user_id: 'u', delay_ms: 60_000 })
  const ids = ['typo', 'unsigned', 'forged', 'of-none'].map((name) => unique(name))
  const [typo = '', unsigned = '', forged = '', ofNone = ''] = ids
  await send(typo, { ...good, promt: 'y' })
  await send(unsigned, good, ['a-queue-secret-of-32-characters--'])
  await send(forged, signJob(forged, good, 'another'), ['a-queue-secret-of-32-characters--'])
  await send(ofNone, { prompt: '', user_id: 'u', business_id: unique('b') })

  const listed: { id: string; job_id: string; business_id: string | null; run_id: string | null }[] = []
  for (let cursor = ''; ; ) {
    const { body } = await call('GET', `?limit=3${cursor}`)
    listed.push(...body.data)
    if (body.next_cursor === null) break
    cursor = `&cursor=${body.next_cursor}`
  }
  expect(listed.map(({ job_id }) => job_id)).toEqual(ids.toReversed())
  expect(listed.map(({ business_id }) => business_id)).toEqual([null, null, null, business])
  expect(Object.keys(listed[0] ?? {})).not.toContain('data')
  const rowOf = (job: string) => listed.find(({ job_id }) => job_id === job)?.id ?? ''

  expect(await call('GET', `/${rowOf(typo)}`)).toMatchObject({
    status: 200,
    body: { errors: [{ pointer: '/promt', detail: 'unknown field' }], data: { promt: 'y' }, run_id: null },
  })
  expect(await call('GET', `/${rowOf(ofNone)}`)).toMatchObject({
    status: 200,
    body: { data: { prompt: '' } },
  })

  // as it was sent it is refused again; corrected it is a run, once
  expect(await call('POST', `/${rowOf(typo)}/resubmit`)).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: '/data/promt' }] },
  })
  const corrected = await call('POST', `/${rowOf(typo)}/resubmit`, { data: good })
  expect(corrected).toMatchObject({ status: 202, body: { status: 'queued' } })
  expect((await call('POST', `/${rowOf(typo)}/resubmit`, { data: good })).body).toEqual(corrected.body)
  expect((await call('GET', `/${rowOf(typo)}`)).body.run_id).toBe(corrected.body.id)
  expect(await runtime.of(business).run(corrected.body.id)).toMatchObject({ status: 'queued' })

  // an admin vouches for what no signature proved; the job that comes again is that run
  for (const job of [unsigned, forged])
    expect(await call('POST', `/${rowOf(job)}/resubmit`)).toMatchObject({ status: 202 })
  expect(await send(unsigned, good)).toMatchObject({
    run_id: (await call('GET', `/${rowOf(unsigned)}`)).body.run_id,
  })

  expect((await call('DELETE', `/${rowOf(ofNone)}`)).status).toBe(204)
  for (const [method, at] of [
    ['DELETE', `/${rowOf(ofNone)}`],
    ['GET', `/${rowOf(ofNone)}`],
    ['POST', '/1x/resubmit'],
    ['GET', `/${'9'.repeat(30)}`],
  ] as const)
    expect((await call(method, at)).status).toBe(404)
  const { token } = await runtime.admin.tokens.create(
    {},
    {
      business_id: business,
      label: 'x',
      roles: ['submit', 'read', 'admin'],
    },
  )
  expect((await call('GET', '', undefined, token)).status).toBe(403)
})
