// backends: either

import { expect } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import { createRetentionSweep } from '../../../src/engine/sessions/retention-sweep.ts'
import intakeRetention from '../../../src/features/intake/intake.retention.ts'
import {
  holdSessionBlobs,
  holdStoredBlobs,
  releaseSessionBlobs,
  storeBlobStatement,
} from '../../../src/files/blobs/blobs.ts'
import { createImageDescriptionCache, createPreparedCache } from '../../../src/files/prepared-cache.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { test } from '../../support/integration-test.ts'
import { count } from '../../support/runs.ts'

test.beforeAll(async ({ database }) => {
  await ensureBusiness(database, 'b')
  await database.query("INSERT INTO sessions (tenant, session_id, user_id) VALUES ('b', 's', 'u')")
})

const keep = { blobsDays: 7, rejectedJobsDays: 30 }

/** Blobs stored so many days ago; those with a session are held by it. */
const stored = async (database: Database, hash: string, daysAgo: number, session?: string): Promise<void> => {
  await database.query(storeBlobStatement, ['b', hash, Buffer.from(hash)])
  if (session) await holdSessionBlobs(database, 'b', [{ sha256: hash, session_id: session }])
  await database.query(
    "UPDATE blobs SET created_at = clock_timestamp() - $2::int * interval '1 day' WHERE sha256 = $1",
    [hash, daysAgo],
  )
}
const blobs = async (database: Database): Promise<string[]> =>
  (await database.query<{ sha256: string }>('SELECT sha256 FROM blobs ORDER BY sha256')).rows.map(
    (row) => row.sha256,
  )

test('the sweep deletes old blobs that no session holds, and nothing else', async ({ database }) => {
  await stored(database, 'held', 100, 's')
  await stored(database, 'held by a session that is gone', 100, 'gone')
  await stored(database, 'free', 8)
  await stored(database, 'free and young', 6)
  await createRetentionSweep(database, keep)()
  expect(await blobs(database)).toEqual(['free and young', 'held'])
  expect(await count(database, 'blob_uses', [])).toBe(1)
})

test('the sweep keeps an old blob that was stored again', async ({ database }) => {
  await stored(database, 'again', 8)
  await database.query(storeBlobStatement, ['b', 'again', Buffer.from('again')])
  await createRetentionSweep(database, keep)()
  expect(await blobs(database)).toContain('again')
})

test('the sweep gets past many held blobs, one batch a pass', async ({ database }) => {
  await database.query(
    `INSERT INTO blobs (tenant, sha256, bytes, created_at) SELECT 'b', 'x' || n, '', clock_timestamp() - interval '50 days' FROM generate_series(1, 900) n`,
  )
  await database.query(
    "INSERT INTO blob_uses (tenant, sha256, session_id) SELECT 'b', 'x' || n, 's' FROM generate_series(1, 900) n",
  )
  await stored(database, 'behind them', 40)
  const sweep = createRetentionSweep(database, keep)
  await sweep()
  expect(await blobs(database)).toContain('behind them')
  await sweep()
  expect(await blobs(database)).not.toContain('behind them')
  await stored(database, 'at the beginning', 60)
  await sweep()
  expect(await blobs(database)).not.toContain('at the beginning')
  expect(await count(database, "blobs WHERE sha256 LIKE 'x%'", [])).toBe(900)
})

test('a file that one session releases stays for another that names it, with its prepared content', async ({
  database,
}) => {
  await database.query(
    `INSERT INTO sessions (tenant, session_id, user_id) VALUES ('b', 'first', 'u'), ('b', 'second', 'u');`,
  )
  await database.query(
    `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at) VALUES ('b', 'run', 'second', 1, 'running', clock_timestamp())`,
  )
  for (const name of ['shared', 'alone']) {
    await stored(database, `${name} file`, 8, 'first')
    await stored(database, `${name} text`, 8, 'first')
    await database.query(
      `INSERT INTO prepared_files (tenant, sha256, opened_as, found, blobs) VALUES ('b', $1, '', '{}', ARRAY[$2])`,
      [`${name} file`, `${name} text`],
    )
  }
  const run = { tenant: 'b', run_id: 'run' }
  expect(await holdStoredBlobs(database, run, ['shared file', 'shared text', 'gone'])).toBe(2)
  await database.asBusiness('b', (sql) => releaseSessionBlobs(sql, 'b', 'first'))
  expect((await blobs(database)).filter((hash) => /shared|alone/.test(hash))).toEqual([
    'shared file',
    'shared text',
  ])
  const { rows } = await database.query('SELECT sha256 FROM prepared_files')
  expect(rows).toEqual([{ sha256: 'shared file' }])
})

test('the description of a mapped image is deleted with the last session that asked, not before', async ({
  database,
}) => {
  for (const nth of ['1', '2', '3']) {
    await database.query("INSERT INTO sessions (tenant, session_id, user_id) VALUES ('b', $1, 'u')", [
      `s${nth}`,
    ])
    await database.query(
      `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at) VALUES ('b', $1, $2, 1, 'running', clock_timestamp())`,
      [`r${nth}`, `s${nth}`],
    )
  }
  const of = (run_id: string) => createImageDescriptionCache(database, { tenant: 'b', run_id })
  const drop = (session: string) => database.asBusiness('b', (sql) => releaseSessionBlobs(sql, 'b', session))
  const shows = { description: 'A passport.', text: 'P<UTO', by: 'eye' }
  await of('r1').keep('hash of an image that is no blob', shows)
  expect(await of('r2').find('hash of an image that is no blob')).toEqual(shows)
  await drop('s1')
  expect(await of('r2').find('hash of an image that is no blob')).toEqual(shows)
  await drop('s2')
  expect(await of('r3').find('hash of an image that is no blob')).toBeNull()
  expect(await count(database, "prepared_files WHERE found::text LIKE '%passport%'", [])).toBe(0)
  expect(await count(database, "blobs WHERE convert_from(bytes, 'UTF8') LIKE '%passport%'", [])).toBe(0)
})

test('the prepared content of a mapped file is deleted with the last session that asked, of an uploaded one with its bytes', async ({
  database,
}) => {
  for (const nth of ['4', '5'])
    await database.query(
      `WITH s AS (INSERT INTO sessions (tenant, session_id, user_id) VALUES ('b', 's' || $1::text, 'u'))
       INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
       VALUES ('b', 'r' || $1::text, 's' || $1::text, 1, 'running', clock_timestamp())`,
      [nth],
    )
  const of = (run_id: string) => createPreparedCache(database, { tenant: 'b', run_id })
  const drop = (session: string) => database.asBusiness('b', (sql) => releaseSessionBlobs(sql, 'b', session))
  const found = { format: 'csv', readable: true, facts: { largest: 'Clara Jensen' }, notes: [] }
  await stored(database, 'an upload', 1, 's4')
  await of('r4').save('hash of a mapped table', '.csv', found)
  await of('r4').save('an upload', '.csv', found)
  expect(await of('r5').find('hash of a mapped table', '.csv')).toEqual(found)
  const left = () => count(database, "prepared_files WHERE found::text LIKE '%Clara%'", [])
  expect([await left(), await count(database, "blob_uses WHERE session_id = 's4'", [])]).toEqual([2, 2])
  await drop('s4')
  expect(await left()).toBe(1)
  await drop('s5')
  expect(await left()).toBe(0)
  expect(await count(database, "blobs WHERE convert_from(bytes, 'UTF8') LIKE '%Clara%'", [])).toBe(0)
})

test('the sweep deletes old model responses that could not be read', async ({ database }) => {
  await database.query(
    `INSERT INTO unread_answers (model_id, place, raw, at) VALUES ('m', 'text', 'old', clock_timestamp() - interval '31 days'),
       ('m', 'text', 'new', clock_timestamp() - interval '29 days')`,
  )
  await createRetentionSweep(database, keep)()
  const { rows } = await database.query<{ raw: string }>('SELECT raw FROM unread_answers')
  expect(rows.map(({ raw }) => raw)).toEqual(['new'])
})

test('the sweep deletes old rejected queue jobs', async ({ database }) => {
  await database.query(
    `INSERT INTO rejected_jobs (job_id, data, faults, received_at) VALUES ('old', '{}', '[]', clock_timestamp() - interval '31 days'),
       ('new', '{}', '[]', clock_timestamp() - interval '29 days')`,
  )
  await createRetentionSweep(database, keep, [intakeRetention.sweep ?? (async () => {})])()
  const { rows } = await database.query<{ job_id: string }>('SELECT job_id FROM rejected_jobs')
  expect(rows.map(({ job_id }) => job_id)).toEqual(['new'])
})
