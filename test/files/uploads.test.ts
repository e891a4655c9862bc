// backends: either

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect } from 'vitest'
import { createRetentionSweep } from '../../src/engine/sessions/retention-sweep.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { unique } from '../support/backend.ts'
import type { Call, TestServer } from '../support/http.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'
import { seededBytes } from '../support/random.ts'
import { count, readContent, until } from '../support/runs.ts'
import { calling, say } from '../support/script.ts'

const test = runtimeTest
const megabyte = 1024 * 1024
const hashOf = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')
const csv = 'city,price\nUlm,3\nBonn,2\nUlm,4\n'

/** Files of one business over HTTP. */
const filesOf = (server: TestServer, business: string) => {
  const call = (method: string, path: string, { headers, ...more }: Call = {}) =>
    server.call(method, `${path}?business_id=${business}`, {
      token: adminToken,
      ...(headers && { headers }),
      ...more,
    })
  return {
    call,
    post: (raw: string | Uint8Array | undefined, headers: Record<string, string> = {}, name = 'shops.csv') =>
      call('POST', '/v1/files', {
        ...(raw !== undefined && { raw }),
        headers: { 'content-type': 'text/csv', 'x-file-name': name, ...headers },
      }),
    patch: (id: string, offset: number, raw: string | Uint8Array = '') =>
      call('PATCH', `/v1/files/${id}`, {
        raw,
        headers: { 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream' },
      }),
    head: async (id: string) => {
      const { status, headers } = await call('HEAD', `/v1/files/${id}`)
      return [status, headers.get('upload-offset'), headers.get('upload-length')]
    },
    get: (id: string) => call('GET', `/v1/files/${id}`),
    submit: (files: object[], more: object = {}) =>
      call('POST', '/v1/runs', { json: { prompt: 'Who leads?', user_id: 'u', files, ...more } }),
  }
}
const partsOf = (database: Database, business: string) =>
  count(database, 'file_parts WHERE tenant = $1', [business])

describe('a file', () => {
  test('is stored under its hash, and known when its bytes arrive again', async ({ server, database }) => {
    const business = unique('up')
    const { post, get } = filesOf(server, business)
    const first = await post(csv)
    expect([first.status, first.body]).toEqual([
      201,
      { id: first.body.id, sha256: hashOf(csv), bytes: csv.length },
    ])
    expect(first.headers.get('location')).toBe(`/v1/files/${first.body.id}`)
    expect((await get(first.body.id)).body).toMatchObject({
      ...{ id: first.body.id, name: 'shops.csv', type: 'text/csv' },
      ...{ bytes: csv.length, length: csv.length, sha256: hashOf(csv) },
    })
    const again = await post(csv, { 'x-sha256': hashOf(csv).toUpperCase() })
    expect([again.status, again.body]).toEqual([200, first.body])
    const other = await post(csv, {}, '%E5%BA%97.csv')
    expect([other.status, other.body.sha256]).toEqual([200, hashOf(csv)])
    expect((await get(other.body.id)).body.name).toBe('店.csv')
    expect(await partsOf(database, business)).toBe(1)
    // another business has to send the bytes itself, and does not learn that they are known
    expect((await filesOf(server, unique('up')).post(csv)).status).toBe(201)
  })

  test('of several parts keeps every byte, and none of it is whole in memory', async ({
    server,
    database,
    runtime,
  }) => {
    const business = unique('up')
    const bytes = seededBytes(3 * megabyte + 5)
    const { body } = await filesOf(server, business).post(bytes)
    expect(body).toMatchObject({ sha256: hashOf(bytes), bytes: bytes.length })
    const { rows } = await database.query<{ size: number }>(
      'SELECT octet_length(bytes) AS size FROM file_parts WHERE tenant = $1 ORDER BY part',
      [business],
    )
    expect(rows.map(({ size }) => size)).toEqual([megabyte, megabyte, megabyte, 5])
    const { run } = await runtime
      .of(business)
      .submit({ prompt: 'p', user_id: 'u', delay_ms: 1_000_000, files: [{ file_id: body.id }] })
    const content = await runtime.of(business).blob(run.id, body.sha256)
    const sizes: number[] = []
    for await (const chunk of content?.chunks ?? []) sizes.push(chunk.length)
    expect(sizes).toEqual([megabyte, megabyte, megabyte, 5])
  })

  test('that is not what its hash says leaves nothing', async ({ server, database }) => {
    const business = unique('up')
    const reply = await filesOf(server, business).post(csv, { 'x-sha256': hashOf('other') })
    expect([reply.status, reply.body.errors[0].pointer]).toEqual([422, '/x-sha256'])
    expect(await count(database, 'files WHERE tenant = $1', [business])).toBe(0)
    expect(await partsOf(database, business)).toBe(0)
  })

  test.for([
    [{ 'x-file-name': '' }, '/x-file-name'],
    [{ 'x-file-name': '..%2Fpasswd' }, '/x-file-name'],
    [{ 'x-file-name': 'a%00b' }, '/x-file-name'],
    [{ 'x-sha256': 'abc' }, '/x-sha256'],
    [{ 'upload-length': '-1' }, '/upload-length'],
    [{ 'upload-length': '1e3' }, '/upload-length'],
    [{ 'upload-length': String(512 * megabyte + 1) }, '/upload-length'],
  ] as const)('with the headers %j is refused at %s', async ([headers, pointer], { server }) => {
    const reply = await filesOf(server, 'default').post('x', headers)
    expect([reply.status, reply.body.errors[0].pointer]).toEqual([422, pointer])
  })

  test('whose connection breaks off leaves nothing', async ({ server, database }) => {
    const business = unique('up')
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write(
      `POST /v1/files?business_id=${business} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${adminToken}\r\nx-file-name: a\r\ncontent-length: 9000000\r\n\r\n`,
    )
    socket.write(seededBytes(2 * megabyte))
    await until('a part', async () => (await partsOf(database, business)) > 0)
    socket.destroy()
    await until('no part', async () => (await partsOf(database, business)) === 0)
    expect(await count(database, 'files WHERE tenant = $1', [business])).toBe(0)
  })

  test('is deleted with its bytes', async ({ server, database }) => {
    const business = unique('up')
    const { post, call, get } = filesOf(server, business)
    const { id } = (await post(csv)).body
    expect((await call('DELETE', `/v1/files/${id}`)).status).toBe(204)
    expect((await get(id)).status).toBe(404)
    expect((await call('DELETE', `/v1/files/${id}`)).status).toBe(404)
    expect(await partsOf(database, business)).toBe(0)
    expect(await count(database, 'blobs WHERE tenant = $1', [business])).toBe(0)
  })
})

describe('an upload that is opened', () => {
  test('has its id at once and is appended to, also after a lost answer', async ({ server }) => {
    const business = unique('up')
    const bytes = seededBytes(megabyte + 10)
    const { post, patch, head, get } = filesOf(server, business)
    const opened = await post(undefined, {
      'upload-length': String(bytes.length),
      'x-sha256': hashOf(bytes),
    })
    expect([opened.status, opened.body]).toEqual([201, { id: opened.body.id, sha256: null, bytes: 0 }])
    const { id } = opened.body
    expect(await head(id)).toEqual([200, '0', String(bytes.length)])
    expect((await patch(id, 0, bytes.subarray(0, 7))).headers.get('upload-offset')).toBe('7')
    const wrong = await patch(id, 0, bytes.subarray(0, 7))
    expect([wrong.status, wrong.headers.get('upload-offset'), wrong.body.upload_offset]).toEqual([
      409,
      '7',
      7,
    ])
    expect(wrong.body.code).toBe('upload_offset')
    expect((await patch(id, 7, bytes.subarray(7, 500))).status).toBe(200)
    expect(await head(id)).toEqual([200, '500', String(bytes.length)])
    const last = await patch(id, 500, bytes.subarray(500))
    expect([last.status, last.body]).toEqual([200, { id, sha256: hashOf(bytes), bytes: bytes.length }])
    expect((await patch(id, bytes.length)).body).toEqual(last.body)
    const more = await patch(id, bytes.length, 'x')
    expect([more.status, more.body.errors[0].pointer]).toEqual([422, '/upload-length'])
    expect((await get(id)).body.sha256).toBe(hashOf(bytes))
  })

  test('is complete also where the process ended between its last byte and its hash', async ({
    server,
    database,
  }) => {
    const business = unique('up')
    const { post, patch, head, get } = filesOf(server, business)
    const { id } = (await post(undefined, { 'upload-length': '5' })).body
    await patch(id, 0, 'hell')
    await database.query(
      `WITH moved AS (UPDATE files SET received = 5 WHERE file_id = $1)
       UPDATE file_parts SET bytes = 'hello'::bytea WHERE file_id = $1`,
      [id],
    )
    expect(await head(id)).toEqual([200, '5', '5'])
    expect((await get(id)).body.sha256).toBe(hashOf('hello'))
  })

  test('keeps what arrived before its connection broke off', async ({ server, database }) => {
    const business = unique('up')
    const { post, patch, head } = filesOf(server, business)
    const bytes = seededBytes(3 * megabyte)
    const { id } = (await post(undefined, { 'upload-length': String(bytes.length) })).body
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write(
      `PATCH /v1/files/${id}?business_id=${business} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${adminToken}\r\nupload-offset: 0\r\ncontent-length: ${bytes.length}\r\n\r\n`,
    )
    socket.write(bytes.subarray(0, megabyte + 100))
    await until('a part', async () => (await partsOf(database, business)) > 0)
    socket.destroy()
    await once(socket, 'close')
    const [, offset] = await head(id)
    const at = Number(offset)
    expect(at).toBeGreaterThanOrEqual(megabyte)
    // the bytes that still were on their way may have moved it on
    const done = await patch(id, at, bytes.subarray(at))
    const rest = done.status === 409 ? Number(done.headers.get('upload-offset')) : null
    const last = rest === null ? done : await patch(id, rest, bytes.subarray(rest))
    expect(last.body).toMatchObject({ sha256: hashOf(bytes) })
  })

  test('takes each byte once from two requests at one moment', async ({ server }) => {
    const { post, patch, get } = filesOf(server, unique('up'))
    const { id } = (await post(undefined, { 'upload-length': '10' })).body
    const replies = await Promise.all([patch(id, 0, '01234'), patch(id, 0, '01234'), patch(id, 0, '01234')])
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    await patch(id, 5, '56789')
    expect((await get(id)).body.sha256).toBe(hashOf('0123456789'))
  })
})

describe('a run', () => {
  test('reads the file it names, gives its bytes, and its session keeps them', async ({
    server,
    runtime,
    model,
    database,
  }) => {
    const business = unique('up')
    const { post, get, call } = filesOf(server, business)
    const { id } = (await post(csv)).body
    say(model, {
      planner: [
        calling(['query_table', { sql: 'SELECT sum(price) AS total FROM shops' }]),
        { text: 'It is 9.' },
      ],
    })
    const run = await runtime.complete({ prompt: 'The total?', files: [{ file_id: id }] }, { business })
    expect(run).toMatchObject({ status: 'completed', answer: 'It is 9.' })
    const state = await runtime.stateOf(run.id, business)
    expect(state.origin_files).toEqual([
      { name: 'shops.csv', type: 'text/csv', local_path: `blob:${hashOf(csv)}`, mapping: null },
    ])
    expect(JSON.stringify(state.action_history)).toContain('| 9 |')
    const content = await runtime.of(business).blob(run.id, hashOf(csv))
    expect(String(await readContent(content))).toBe(csv)
    // the id may go; the session keeps the bytes
    await call('DELETE', `/v1/files/${id}`)
    expect(await partsOf(database, business)).toBe(1)
    const again = await post(csv)
    expect(again.status).toBe(200)
    const { id: other } = again.body
    await runtime.complete({ prompt: 'And?', files: [{ file_id: other }] }, { business })
    await runtime.of(business).deleteSession(run.session_id)
    expect([(await get(other)).status, await partsOf(database, business)]).toEqual([200, 1])
  })

  test('names no file that is unknown, unfinished or of another business', async ({ server }) => {
    const { post, submit } = filesOf(server, unique('up'))
    const { id: open } = (await post(undefined, { 'upload-length': '9' })).body
    const { id: foreign } = (await filesOf(server, unique('up')).post(csv)).body
    const unknown = 'file_0123456789abcdef0123456789abcdef'
    for (const [id, says] of [
      [unknown, 'there is no uploaded file'],
      [foreign, 'there is no uploaded file'],
      [open, 'has 0 of 9 bytes'],
    ] as const) {
      const reply = await submit([{ file_id: id }])
      expect([reply.status, reply.body.errors]).toEqual([
        422,
        [{ pointer: '/files/0/file_id', detail: expect.stringContaining(says) }],
      ])
    }
  })

  test('gets the names that its request gives, which must differ', async ({ server }) => {
    const { post, submit } = filesOf(server, unique('up'))
    const { id } = (await post(csv)).body
    expect((await submit([{ file_id: id }, { file_id: id }])).status).toBe(422)
    expect((await submit([{ file_id: id }, { file_id: id, name: 'b.csv', type: 'text/csv' }])).status).toBe(
      202,
    )
    expect((await submit([{ file_id: id, url: 'https://a.example/x' }])).status).toBe(422)
  })

  test('is the same for the same key, also when its file is gone', async ({ server, runtime }) => {
    const business = unique('up')
    const { post, call } = filesOf(server, business)
    const { id } = (await post(csv)).body
    const request = { prompt: 'p', user_id: 'u', delay_ms: 1_000_000, files: [{ file_id: id }] }
    const first = await runtime.of(business).submit(request, 'k')
    await call('DELETE', `/v1/files/${id}`)
    expect(await runtime.of(business).submit(request, 'k')).toEqual({ ...first, replayed: true })
  })
})

describe('a file that no run uses', () => {
  const age = (database: Database, business: string) =>
    Promise.all(
      ['files SET touched_at', 'blobs SET created_at'].map((text) =>
        database.query(`UPDATE ${text} = clock_timestamp() - interval '8 days' WHERE tenant = $1`, [
          business,
        ]),
      ),
    )
  const sweep = (database: Database) =>
    createRetentionSweep(database, { blobsDays: 7, rejectedJobsDays: 30 })()

  test('is deleted after seven days, complete or not; what a run names stays', async ({
    server,
    database,
    runtime,
  }) => {
    const business = unique('up')
    const { post, patch, get } = filesOf(server, business)
    const { id: unused } = (await post('unused')).body
    const { id: open } = (await post(undefined, { 'upload-length': '9' })).body
    await patch(open, 0, 'abc')
    const { id: used } = (await post(csv)).body
    const { run } = await runtime
      .of(business)
      .submit({ prompt: 'p', user_id: 'u', delay_ms: 1_000_000, files: [{ file_id: used }] })
    await sweep(database)
    expect(await partsOf(database, business)).toBe(3)
    await age(database, business)
    const { id: young } = (await post('young')).body
    await sweep(database)
    const statuses = await Promise.all([unused, open, used, young].map(async (id) => (await get(id)).status))
    expect(statuses).toEqual([404, 404, 200, 200])
    expect(await partsOf(database, business)).toBe(2)
    // with its session it goes at once
    await runtime.of(business).deleteSession(run.session_id)
    expect([(await get(used)).status, await partsOf(database, business)]).toEqual([404, 1])
  })

  test('stays for others of the business that received the same bytes', async ({
    server,
    database,
    runtime,
  }) => {
    const business = unique('up')
    const { post, get } = filesOf(server, business)
    const { id: mine } = (await post(csv, {}, 'mine.csv')).body
    const { id: yours } = (await post(csv, {}, 'yours.csv')).body
    const request = { prompt: 'p', user_id: 'u', delay_ms: 1_000_000, files: [{ file_id: mine }] }
    const { run } = await runtime.of(business).submit(request)
    await runtime.of(business).deleteSession(run.session_id)
    expect([(await get(mine)).status, (await get(yours)).status]).toEqual([404, 200])
    expect(await partsOf(database, business)).toBe(1)
  })
})
