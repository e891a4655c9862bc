// backends: either

import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import S3rver from 's3rver'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import { ensureBusiness } from '../../src/accounts/businesses.ts'
import { checkFiles } from '../../src/app/cli/doctor/files.ts'
import { createFileService, type FileService, type FilesOptions } from '../../src/files/run-files.ts'
import { warnAboutSharedRoot } from '../../src/files/shared-files-root.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { openEgress } from '../../src/infra/egress/egress.ts'
import type { Egress } from '../../src/infra/egress/egress-port.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import type { Files } from '../../src/state/ports/files.ts'
import type { OriginFile } from '../../src/state/runtime-state.ts'
import type { Backend } from '../support/backend.ts'
import { documentReaders } from '../support/document-readers.ts'
import type { FakeModel } from '../support/fake-model/fake-model.ts'
import { openFolder, pdfOf, zipOf } from '../support/file-samples.ts'
import { runtimeTest } from '../support/integration-test.ts'
import { calling, say } from '../support/script.ts'
import { nodesOf, type TestRuntime } from '../support/test-runtime.ts'

let backend: Backend
let model: FakeModel
let runtime: TestRuntime
/** The one of the runtime. */
let rows: Database
const bucket = { isDown: true, asked: [] as string[] }
const objects = createServer((request, response) => {
  bucket.asked.push(request.url ?? '')
  if (request.url === '/none.csv') response.writeHead(404).end()
  else if (bucket.isDown) response.writeHead(503).end()
  else response.end('n\n7\n')
})
const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, async ({}, { onCleanup }) => {
  await once(objects.listen(0, '127.0.0.1'), 'listening')
  onCleanup(() => {
    objects.closeAllConnections()
    objects.close()
  })
  const url = `http://127.0.0.1:${(objects.address() as AddressInfo).port}`
  return { config: { storage: { aws: { url, region: 'auto', accessKeyId: 'a', secretAccessKey: 'b' } } } }
})
test.beforeAll(({ backend: b, database: d, model: m, runtime: r }) => {
  ;[backend, rows, model, runtime] = [b, d, m, r]
})

const upload = (name: string, bytes: string | Uint8Array, type = 'application/octet-stream') => ({
  name,
  type,
  content_base64: Buffer.from(bytes).toString('base64'),
})

/** Which bytes that a run's state names the run does not show. */
const notShown = async (runId: string): Promise<string[]> => {
  const named = JSON.stringify(await runtime.stateOf(runId)).match(/(?<="blob":"|blob:)[0-9a-f]{64}/g) ?? []
  expect(named).not.toEqual([])
  const shown = await Promise.all(named.map((hash) => runtime.of('default').blob(runId, hash)))
  return named.filter((_, at) => shown[at] === null)
}

describe('a run with files', () => {
  test('searches a document by page and asks a table by SQL', async () => {
    say(model, {
      planner: [
        calling(['search_file_content', { file_path: 'report.pdf', pattern: 'rose' }]),
        calling([
          'query_table',
          { sql: 'SELECT city, sum(price) AS total FROM shops GROUP BY city ORDER BY 2 DESC' },
        ]),
        calling(['query_table', { sql: 'SELECT cost FROM shops' }]),
        calling(['query_table', { sql: 'SELECT sum(n) AS s FROM totals' }]),
        { text: 'Ulm leads.' },
      ],
    })
    const csv = 'city,price\nUlm,3\nBonn,2\nUlm,4\n'
    const files = [
      upload('report.pdf', await pdfOf([['Start'], ['Revenue', 'It rose.']])),
      upload('shops.csv', csv, 'text/csv'),
      upload('totals.csv', 'item,n\nTotal,9\na,2\nb,5\n', 'text/csv'),
    ]
    const run = await runtime.complete({ prompt: 'Who leads?', files })
    expect(run).toMatchObject({ status: 'completed', answer: 'Ulm leads.' })
    const state = await runtime.stateOf(run.id)
    expect(nodesOf(state)).toContain('preprocess-files')
    const said = state.action_history.flat().map(({ result }) => String(result.text))
    expect(said).toContainEqual("Matches in 'report.pdf': [Line 3 (page 2): It rose.]")
    expect(said).toContainEqual('| city | total |\n| --- | --- |\n| Ulm | 7 |\n| Bonn | 2 |')
    const note = 'rows that say "Total" may be sums of others: leave them out of sums'
    expect(said).toContainEqual(`| s |\n| --- |\n| 16 |\nNote: ${note}`)
    expect(said.find((text) => text.startsWith('Error: no such column: cost'))).toContain(
      'shops (3 rows): city text, price integer',
    )
    const again = await runtime.complete({ prompt: 'And now?', session_id: run.session_id })
    expect(nodesOf(await runtime.stateOf(again.id))).not.toContain('preprocess-files')
    // what the session's earlier turns brought too
    expect([await notShown(run.id), await notShown(again.id)]).toEqual([[], []])
  })

  test('that are named with their folders are read and shown under these names', async () => {
    say(model, {
      planner: [calling(['read_file', { file_path: 'core/orchestrator.py' }]), { text: 'Done.' }],
    })
    const names = ['core/orchestrator.py', 'orchestrator.py']
    const files = names.map((name) => upload(name, Buffer.from(`# ${name}`)))
    const run = await runtime.complete({ prompt: 'Look', files })
    const state = await runtime.stateOf(run.id)
    expect(state.origin_files.map(({ name }) => name)).toEqual(names)
    const said = state.action_history.flat().map(({ result }) => String(result.text))
    expect(said).toContainEqual("File 'core/orchestrator.py', lines 1-1 of 1:\n1: # core/orchestrator.py")
    expect(await notShown(run.id)).toEqual([])
  })

  test('opens an archive: what is in it are files of their own', async () => {
    say(model, {
      planner: [
        calling(
          ['read_file', { file_path: 'a.zip/notes.txt' }],
          ['query_table', { sql: 'SELECT max(n) AS m FROM a_zip_data' }],
        ),
        { text: 'Done.' },
      ],
    })
    const run = await runtime.complete({
      prompt: 'Look',
      files: [upload('a.zip', await zipOf({ 'notes.txt': 'hello', 'data.csv': 'n\n1\n5\n' }))],
    })
    const state = await runtime.stateOf(run.id)
    expect(state.origin_files.map(({ name }) => name)).toEqual(['a.zip', 'a.zip/notes.txt', 'a.zip/data.csv'])
    const said = state.action_history.flat().map(({ result }) => String(result.text))
    expect(said).toContainEqual("File 'a.zip/notes.txt', lines 1-1 of 1:\n1: hello")
    expect(said).toContainEqual('| m |\n| --- |\n| 5 |')
    expect(await notShown(run.id)).toEqual([])
  })

  test('an address of this machine, a storage that is not set up, a folder that is not open: notes, and the run goes on', async () => {
    let reached = 0
    const canary = createTcpServer((socket) => {
      reached += 1
      socket.destroy()
    }).listen(0, '127.0.0.1')
    await once(canary, 'listening')
    const { port } = canary.address() as AddressInfo
    say(model, { planner: [{ text: 'Fine.' }] })
    const run = await runtime.complete({
      prompt: 'Read them',
      files: [
        { name: 'inside.txt', type: 'text/plain', url: `http://127.0.0.1:${port}/secret?key=1` },
        { name: 'object.csv', type: 'text/csv', mapping: { provider: 'tencent', path: 'a/b.csv' } },
        { name: 'local.csv', type: 'text/csv', mapping: { provider: 'local', path: 'b.csv' } },
      ],
    })
    canary.close()
    expect(run.status).toBe('completed')
    expect(reached).toBe(0)
    const { other_files } = (await runtime.stateOf(run.id)).preprocessed_files
    expect(other_files['inside.txt']).toMatchObject({
      readable: false,
      notes: [expect.stringContaining('is an address of this machine')],
    })
    expect(other_files['object.csv']).toMatchObject({
      notes: [expect.stringContaining('set MASON_STORAGE_TENCENT_URL')],
    })
    expect(other_files['local.csv']).toMatchObject({
      notes: [expect.stringContaining('set MASON_FILES_ROOT')],
    })
  })
})

describe('files of other sessions, and files that are away for a while', () => {
  test('nothing of another session can be named', async () => {
    say(model, { planner: [{ text: 'Kept.' }] })
    const files = [upload('secret.txt', 'the word is plum'), upload('shops.csv', 'city\nUlm\n', 'text/csv')]
    const first = await runtime.complete({ prompt: 'Keep them', files })
    const [text] = (await runtime.stateOf(first.id)).origin_files
    const paths = ['secret.txt', text?.local_path ?? '', '../secret.txt', `${first.session_id}/secret.txt`]
    say(model, {
      planner: [
        calling(
          ...paths.map((file_path): [string, object] => ['read_file', { file_path }]),
          ['search_file_content', { file_path: text?.local_path ?? '', pattern: 'plum' }],
          ['query_table', { sql: 'SELECT * FROM shops' }],
        ),
        { text: 'Nothing.' },
      ],
    })
    const own = [upload('mine.csv', 'n\n1\n', 'text/csv')]
    const second = await runtime.complete({ prompt: 'Read them', files: own })
    const said = (await runtime.stateOf(second.id)).action_history
      .flat()
      .map(({ result }) => String(result.text))
    expect(said.filter((one) => one.includes('File not found'))).toHaveLength(5)
    expect(said.find((one) => one.includes('no such table: shops'))).toContain('mine (1 rows): n integer')
    expect(JSON.stringify(said)).not.toContain('plum')
    expect(JSON.stringify(said)).not.toContain('Ulm')
  })

  test('a storage that is down is asked again in the next turn, an object that is not there is not', async () => {
    const turn = async (session_id?: string) => {
      say(model, { planner: [{ text: 'Fine.' }] })
      const given = ['none.csv', 'there.csv'].map((path) => ({
        ...{ name: path, type: 'text/csv', mapping: { provider: 'aws' as const, path } },
      }))
      const asks = session_id ? { prompt: 'And now?', session_id } : { prompt: 'Read them', files: given }
      const run = await runtime.complete(asks)
      return { run, state: await runtime.stateOf(run.id) }
    }
    const first = await turn()
    expect(first.state.preprocessed_files.other_files).toMatchObject({
      'none.csv': { readable: false, notes: [expect.stringContaining('has no object')] },
      'there.csv': {
        ...{ readable: false, tries: 1 },
        notes: [expect.stringContaining('status 503'), 'the next turn tries it again'],
      },
    })
    const second = await turn(first.run.session_id)
    expect(second.state.preprocessed_files.other_files['there.csv']).toMatchObject({ tries: 2 })
    bucket.isDown = false
    const third = await turn(first.run.session_id)
    expect(third.state.preprocessed_files).toMatchObject({
      tables: { 'there.csv': { rows: 1 } },
      other_files: { 'there.csv': { readable: true, notes: [] } },
    })
    const fourth = await turn(first.run.session_id)
    const { action_history } = fourth.state
    expect(action_history.map((actions) => actions.some(({ node }) => node === 'preprocess-files'))).toEqual([
      ...[true, true, true, false],
    ])
    expect(bucket.asked).toEqual(['/none.csv', '/there.csv', '/there.csv', '/there.csv'])
  })
})

describe('where files come from', () => {
  let database: Database
  let egress: Egress
  beforeAll(async () => {
    database = await backend.openDatabase()
    for (const id of ['b1', 'b2']) {
      await ensureBusiness(database, id)
      await database.query("INSERT INTO sessions (tenant, session_id, user_id) VALUES ($1, 'ses', 'u')", [id])
      await database.query(
        `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
         VALUES ($1, 'run', 'ses', 1, 'completed', now())`,
        [id],
      )
    }
    const real = openEgress()
    // the servers of these tests stand on loopback, which no address of a business may name
    egress = {
      request: (url, init) => real.request(url, { ...init, allowPrivate: true }),
      [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
    }
  })
  const services: FileService[] = []
  afterAll(async () => {
    for (const service of services) await service[Symbol.asyncDispose]()
    await egress?.[Symbol.asyncDispose]()
    await database?.close()
  })
  const { signal } = new AbortController()
  const nothingBefore = { tables: [], triedFiles: new Set<string>() }
  const runOf = (tenant: string) => ({ tenant, run_id: 'run' })
  const serviceOf = (options: Partial<FilesOptions>): FileService => {
    const service = createFileService({
      egress,
      storage: {},
      filesRoot: null,
      readers: documentReaders,
      ...options,
    })
    services.push(service)
    return service
  }
  const filesOf = (options: Partial<FilesOptions>, tenant = 'b1'): Files =>
    serviceOf(options).openRunFiles(database, runOf(tenant))
  const noteOf = async (files: Files, file: OriginFile) =>
    (await files.prepare([file], nothingBefore, signal)).other_files[file.name]?.notes.join()

  test('an address: fetched once, kept as a blob; redirects are followed, errors and limits are notes', async () => {
    let asked = 0
    const server = createServer((request, response) => {
      asked += 1
      if (request.url === '/moved') response.writeHead(302, { location: '/a.csv' }).end()
      else if (request.url === '/a.csv') response.end('n\n1\n2\n')
      else if (request.url === '/huge') response.writeHead(200, { 'content-length': '100000000' }).end('x')
      else response.writeHead(404).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const files = filesOf({})
    const file = (path: string): OriginFile => ({
      name: 'a.csv',
      type: 'text/csv',
      local_path: `url:${at}${path}`,
      mapping: null,
    })
    const { origin_files, tables } = await files.prepare([file('/moved')], nothingBefore, signal)
    expect(tables['a.csv']).toMatchObject({ rows: 2, table: 'a' })
    expect(origin_files[0]?.local_path).toMatch(/^blob:[0-9a-f]{64}$/)
    expect(asked).toBe(2)
    expect(String(await files.read(origin_files[0] as OriginFile, signal))).toBe(
      String(Buffer.from('n\n1\n2\n')),
    )
    expect(asked).toBe(2)
    expect(await noteOf(files, file('/none'))).toContain('status 404 (not there)')
    expect(await noteOf(files, file('/huge'))).toContain('larger than 64 MB')
    server.closeAllConnections()
    server.close()
  })

  test('slow addresses: a business has its share of what is fetched at once, and each file is off the disk when it was opened', async () => {
    await using temporary = await openFolder()
    vi.stubEnv('TMPDIR', temporary.path)
    const held: ServerResponse[] = []
    const server = createServer((request, response) => {
      if (request.url === '/first.csv') response.end('n\n1\n')
      else held.push(response)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const file = (path: string): OriginFile => ({
      ...{ name: path, type: 'text/csv', local_path: `url:${at}/${path}`, mapping: null },
    })
    const service = serviceOf({})
    const prepare = (tenant: string, ...paths: string[]) =>
      service
        .openRunFiles(database, runOf(tenant))
        .prepare(paths.map(file), nothingBefore, new AbortController().signal)
    const two = prepare('b1', 'first.csv', 'held')
    await vi.waitUntil(() => held.length === 1, { timeout: 90_000 })
    const left = await readdir(temporary.path, { recursive: true })
    expect(left.filter((path) => /work-[^/]*\/./.test(path) && !path.endsWith('/f2'))).toEqual([])
    const many = Array.from({ length: 9 }, () => prepare('b1', 'held'))
    await vi.waitUntil(() => held.length === 8, { timeout: 90_000 })
    const other = prepare('b2', 'held')
    await vi.waitUntil(() => held.length === 9, { timeout: 90_000 })
    for (const response of held.splice(0)) response.writeHead(404).end()
    expect((await two).tables['first.csv']).toMatchObject({ rows: 1 })
    expect((await other).other_files.held?.notes.join()).toContain('status 404')
    await vi.waitUntil(() => held.length === 2, { timeout: 90_000 })
    for (const response of held) response.writeHead(404).end()
    await Promise.all(many)
    vi.unstubAllEnvs()
    server.closeAllConnections()
    server.close()
  })

  test('S3-compatible storage: signed, one folder a business, a missing object and a wrong key are notes', async () => {
    await using folder = await openFolder()
    const s3 = new S3rver({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      directory: folder.path,
      configureBuckets: [{ name: 'data', configs: [] }],
    })
    const { port } = await s3.run()
    const url = `http://127.0.0.1:${port}/data/{business}`
    const key = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
    const client = new AwsClient({ ...key, service: 's3', region: 'us-east-1' })
    const put = await client.fetch(`http://127.0.0.1:${port}/data/b1/my%20sales/%E9%94%80%E5%94%AE.csv`, {
      method: 'PUT',
      body: 'n\n7\n',
    })
    expect(put.status).toBe(200)
    const place = { url, region: 'us-east-1', ...key }
    const file: OriginFile = {
      name: 's.csv',
      type: 'text/csv',
      local_path: '',
      mapping: { provider: 'aliyun', path: 'my sales/销售.csv' },
    }
    const storage = { aliyun: place }
    expect((await filesOf({ storage }).prepare([file], nothingBefore, signal)).tables['s.csv']).toMatchObject(
      {
        rows: 1,
        from: 'aliyun:my sales/销售.csv',
      },
    )
    expect(await noteOf(filesOf({ storage }, 'b2'), file)).toContain(
      'aliyun has no object "my sales/销售.csv"',
    )
    const upwards = { ...file, mapping: { provider: 'aliyun' as const, path: '../b1/my sales/销售.csv' } }
    expect(await noteOf(filesOf({ storage }, 'b2'), upwards)).toContain('leads upwards')
    const wrong = { aliyun: { ...place, accessKeyId: 'other' } }
    expect(await noteOf(filesOf({ storage: wrong }), file)).toContain(
      'check the key in MASON_STORAGE_ALIYUN_ACCESS_KEY_ID',
    )
    await s3.close()
  })

  test('a local folder; links do not lead out of it', async () => {
    await using folder = await openFolder()
    await writeFile(join(folder.path, 'a.csv'), 'n\n1\n')
    const files = filesOf({ filesRoot: folder.path })
    const local = (path: string): OriginFile => ({
      name: 'a.csv',
      type: 'text/csv',
      local_path: '',
      mapping: { provider: 'local', path },
    })
    expect((await files.prepare([local('a.csv')], nothingBefore, signal)).tables['a.csv']).toMatchObject({
      rows: 1,
    })
    for (const path of ['../a.csv', '/etc/passwd', 'none.csv', '.', 'a\u0000b'])
      expect(await noteOf(files, local(path))).toContain('it is not there')
  })

  test('a folder that several businesses share is warned of once, one with {business} is not', async () => {
    const said: unknown[] = []
    const log = { ...silentLog, warn: (...words: unknown[]) => void said.push(words) }
    await warnAboutSharedRoot(database, null, log)
    await warnAboutSharedRoot(database, '/srv/files/{business}', log)
    expect(said).toEqual([])
    await warnAboutSharedRoot(database, '/srv/files', log)
    expect(said).toEqual([
      [
        expect.objectContaining({ remedy: expect.stringContaining('put {business} into MASON_FILES_ROOT') }),
        'a local mapping of one business may point at the files of the others',
      ],
    ])
    const look = (filesRoot: string | null) =>
      checkFiles({ ...backend.config, filesRoot }, signal, { sources: [] })
    expect(await look(null)).toEqual([])
    expect(await look('/srv/{business}')).toEqual([
      { ok: true, text: 'local mappings: each business has its own folder, /srv/{business}' },
    ])
    // an embedded database in memory cannot be opened a second time
    if (backend.config.database.kind !== 'postgres') return
    expect(await look('/srv/files')).toEqual([
      {
        ok: true,
        text: expect.stringMatching(/each of the \d+ can read the files of the others$/),
        remedy: expect.stringContaining('{business}'),
      },
    ])
  })

  test('an address with a key in it shows nowhere, and the file can still be fetched, also in a fork', async () => {
    const key = 'CANARY-4f1c'
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url ?? '')
      if (asked.length === 1) response.writeHead(503).end()
      else response.end('n\n1\n')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.csv?sig=${key}&x=1#${key}`
    // without leave to reach this machine the run itself cannot have it
    say(model, { planner: [{ text: 'Fine.' }] })
    const { id, session_id } = await runtime.complete({
      prompt: 'Read it',
      files: [{ name: 'a.csv', type: 'text/csv', url }],
    })
    const api = runtime.of('default')
    const state = await runtime.stateOf(id)
    const [file] = state.origin_files
    expect(file?.local_path).toMatch(/^url:http:\/\/127\.0\.0\.1:\d+\/a\.csv\?hidden=[0-9a-f]{16}$/)
    const shown = [state, await api.run(id), await api.session(session_id), model.requests()]
    expect(JSON.stringify(shown)).not.toContain(key)
    const found = await rows.query<{ kept: number; logged: number }>(
      `SELECT (SELECT count(*)::int FROM run_requests WHERE request::text LIKE $1) AS kept,
         (SELECT count(*)::int FROM actions WHERE body::text || patch::text LIKE $1) AS logged`,
      [`%${key}%`],
    )
    expect(found.rows).toEqual([{ kept: 1, logged: 0 }])
    const inRun = (run_id: string, tenant = 'default') => serviceOf({}).openRunFiles(rows, { tenant, run_id })
    const first = (await inRun(id).prepare([file as OriginFile], nothingBefore, signal)).other_files['a.csv']
    expect(first).toMatchObject({ tries: 1, notes: [expect.stringContaining('status 503')] })
    expect(JSON.stringify(first)).not.toContain(key)
    const fork = await api.fork(session_id, 1)
    for (const run_id of [id, fork?.turns[0]?.run_id ?? ''])
      expect(
        (await inRun(run_id).prepare([file as OriginFile], nothingBefore, signal)).tables['a.csv'],
      ).toBeDefined()
    expect(asked).toEqual(Array(3).fill(`/a.csv?sig=${key}&x=1`))
    // of another business, or of another session of this one, it is nothing
    const other = await runtime.complete({ prompt: 'Hello' })
    for (const run of [inRun(id, 'b1'), inRun(other.id)])
      expect(await noteOf(run, file as OriginFile)).toBe(
        'its whole address is gone; send it again, or upload the file',
      )
    server.closeAllConnections()
    server.close()
  })

  test('the same bytes are opened once for a business, and again for another or when their text is gone', async () => {
    const files = filesOf({})
    const pdf = await pdfOf([['Cached', 'once']])
    const hash = await keep('b1', pdf)
    const file: OriginFile = { name: 'c.pdf', type: '', local_path: `blob:${hash}`, mapping: null }
    const first = await files.prepare([file], nothingBefore, signal)
    const rows = async (tenant: string) =>
      (
        await database.query<{ created_at: Date; blobs: string[] }>(
          'SELECT created_at, blobs FROM prepared_files WHERE tenant = $1 AND sha256 = $2',
          [tenant, hash],
        )
      ).rows
    const [row] = await rows('b1')
    const never = serviceOf({
      limits: { prepare: { maxBytes: 1, maxMs: 30_000 }, job: { maxBytes: 1, maxMs: 30_000 } },
    })
    expect(await never.openRunFiles(database, runOf('b1')).prepare([file], nothingBefore, signal)).toEqual(
      first,
    )
    await keep('b2', pdf)
    expect(
      (await never.openRunFiles(database, runOf('b2')).prepare([file], nothingBefore, signal)).other_files[
        'c.pdf'
      ]?.notes[0],
    ).toMatch(/more memory|takes longer/)
    await database.query('DELETE FROM blobs WHERE tenant = $1 AND sha256 = $2', ['b1', row?.blobs[0]])
    expect(await files.prepare([file], nothingBefore, signal)).toEqual(first)
    expect(await noteOf(files, { ...file, local_path: 'blob:none' })).toContain('its bytes are gone')
    const seen = await database.asBusiness('b2', (sql) => sql.query('SELECT 1 FROM prepared_files'))
    expect(seen.rows).toEqual([])
  })

  const keep = async (tenant: string, bytes: Uint8Array): Promise<string> => {
    const { sha256 } = await import('../../src/infra/lib/ids.ts')
    const hash = sha256(bytes)
    await database.query(
      'INSERT INTO blobs (tenant, sha256, bytes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
      [tenant, hash, bytes],
    )
    await database.query(
      "INSERT INTO blob_uses (tenant, sha256, session_id) VALUES ($1, $2, 'ses') ON CONFLICT DO NOTHING",
      [tenant, hash],
    )
    return hash
  }
})
