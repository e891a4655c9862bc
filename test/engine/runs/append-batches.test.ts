// backends: both
// asserts: invariants

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import { createAppendBatches } from '../../../src/engine/runs/append-batches.ts'
import { createRetryingSql, type LeaseGuard } from '../../../src/engine/runs/leases.ts'
import { createRunLog } from '../../../src/engine/runs/run-log.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { LogEntry, RunLog } from '../../../src/state/ports/run-log.ts'
import { test } from '../../support/integration-test.ts'
import { codeOf, entry, unavailable, until } from '../../support/runs.ts'

const heldLease = (): LeaseGuard => ({ signal: new AbortController().signal, check() {} })
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const result = { answer: 'x', output_structure: [], error: null }
const completed = { status: 'completed', reason: 'answered' } as const

type Key = { tenant: string; run_id: string }

let groups = 0
/** Runs of two businesses that one worker has, each before its fifth action, and their logs, which share `batches`. */
const holdRuns = async (database: Database, count: number, seen: Database = database) => {
  const group = `g${++groups}`
  for (const business of ['a', 'b']) await ensureBusiness(database, business)
  const keys = Array.from(
    { length: count },
    (_, n): Key => ({
      tenant: n % 3 === 0 ? 'b' : 'a',
      run_id: `${group}_${n}`,
    }),
  )
  const rows = [JSON.stringify(keys)]
  const from = 'json_to_recordset($1::json) AS item(tenant text, run_id text)'
  await database.query(
    `INSERT INTO sessions (tenant, session_id, user_id, turns) SELECT tenant, 's_' || run_id, 'u1', 1 FROM ${from}`,
    rows,
  )
  await database.query(
    `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at, epoch, first_seq, next_seq, lease_owner, lease_until)
     SELECT tenant, run_id, 's_' || run_id, 1, 'running', now() + interval '1 hour', 2, 1, 5, 'w1', now() + interval '1 hour' FROM ${from}`,
    rows,
  )
  const appendTogether = createAppendBatches(seen, 30_000)
  const logOf = (key: Key, { epoch = 2, lease = heldLease() } = {}): RunLog =>
    createRunLog(
      createRetryingSql(seen, systemClock, lease),
      { ...key, epoch, worker_id: 'w1' },
      { lease, appendTogether },
    )
  const stored = async () => {
    const { rows: found } = await database.query<{
      run_id: string
      next_seq: number
      status: string
      tokens: number
      attempts: string[]
    }>(
      `SELECT run_id, next_seq, status, total_tokens AS tokens,
         ARRAY(SELECT attempt_id FROM actions a WHERE a.run_id = r.run_id ORDER BY seq) AS attempts
       FROM runs r WHERE run_id LIKE $1 || '\\_%'`,
      [group],
    )
    return new Map(found.map((row) => [row.run_id, row]))
  }
  return { keys, logOf, stored }
}

/** Notes how many appends each statement carried. */
const watch = (database: Database) => {
  const sizes: number[] = []
  const watched: Database = {
    ...database,
    async query<Row>(text: string, values: readonly unknown[] = [], options = {}) {
      if (text.includes('INSERT INTO actions'))
        sizes.push(text.includes('json_to_recordset') ? JSON.parse(String(values[0])).length : 1)
      return database.query<Row>(text, values, options)
    },
  }
  return { sizes, watched }
}

describe('combined appends', () => {
  test('of runs of two businesses share statements; the first starts at once', async ({ database }) => {
    const { sizes, watched } = watch(database)
    const { keys, logOf, stored } = await holdRuns(database, 12, watched)
    const first = keys[0] as Key
    const starting = logOf(first).append(entry(5, { usage }))
    await until('the first statement', () => sizes.length > 0)
    await Promise.all([starting, ...keys.slice(1).map((key) => logOf(key).append(entry(5, { usage })))])
    expect(sizes).toEqual([1, 11])
    for (const row of (await stored()).values())
      expect(row).toMatchObject({ next_seq: 6, tokens: 5, attempts: [expect.any(String)] })
  })

  test('never hold two rows of one run', async ({ database }) => {
    const { sizes, watched } = watch(database)
    const { keys, logOf, stored } = await holdRuns(database, 3, watched)
    const [first, ...others] = keys as [Key, ...Key[]]
    const starting = logOf(first).append(entry(5))
    await until('the first statement', () => sizes.length > 0)
    const next = [6, 7].map((seq) => logOf(first).append(entry(seq)))
    await Promise.all([starting, ...next, ...others.map((key) => logOf(key).append(entry(5)))])
    expect(sizes).toEqual([1, 3, 1])
    expect((await stored()).get(first.run_id)?.attempts).toHaveLength(3)
  })

  test('ends share statements too: results, failures and wake-ups are theirs', async ({ database }) => {
    const { sizes, watched } = watch(database)
    const { keys, logOf } = await holdRuns(database, 9, watched)
    const failed = {
      status: 'failed',
      reason: 'model_unavailable',
      error: { code: 'model_unavailable', message: 'no', node: 'planner' },
    } as const
    await database.query(
      `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
       SELECT tenant, 'next_' || run_id, session_id, 2, 'queued', now() + interval '1 hour' FROM runs WHERE run_id = $1`,
      [keys[4]?.run_id],
    )
    await Promise.all(
      keys.map((key, n) =>
        logOf(key).finish(entry(5), n === 7 ? failed : completed, { ...result, answer: `${n}` }),
      ),
    )
    expect(Math.max(...sizes)).toBe(9)
    const { rows } = await database.query(
      `SELECT r.status, r.finish_reason, r.lease_owner, o.result ->> 'answer' AS answer, f.error, f.node,
         (SELECT run_id FROM outbox w WHERE w.run_id = 'next_' || r.run_id) AS woken
       FROM runs r JOIN run_results o USING (tenant, run_id) LEFT JOIN run_failures f USING (tenant, run_id)
       WHERE run_id = ANY($1) ORDER BY run_id`,
      [keys.map(({ run_id }) => run_id)],
    )
    expect(rows).toEqual(
      keys.map(({ run_id }, n) => ({
        status: n === 7 ? 'failed' : 'completed',
        finish_reason: n === 7 ? null : 'answered',
        lease_owner: null,
        answer: `${n}`,
        ...(n === 7 ? { error: 'model_unavailable', node: 'planner' } : { error: null, node: null }),
        woken: n === 4 ? `next_${run_id}` : null,
      })),
    )
    await database.query("DELETE FROM runs WHERE run_id LIKE 'next\\_%'")
  })

  type Kind = keyof typeof makers
  type Appending = { log: RunLog; first: LogEntry }
  /** What one row of a batch may be, and what becomes of it: an error code, and whether the action is there. */
  const makers = {
    good: { epoch: 2, seq: 5, more: {}, code: 'no error', isStored: true },
    'of an old epoch': { epoch: 1, seq: 5, more: {}, code: 'lease_lost', isStored: false },
    'of a later epoch': { epoch: 3, seq: 5, more: {}, code: 'lease_lost', isStored: false },
    'at an id that is taken': { epoch: 2, seq: 4, more: {}, code: 'lease_lost', isStored: false },
    'at an id that leaves a gap': { epoch: 2, seq: 6, more: {}, code: 'lease_lost', isStored: false },
    'that the database refuses': { epoch: 2, seq: 5, more: { body: '{' }, code: '22P02', isStored: false },
    'larger than a batch': {
      epoch: 2,
      seq: 5,
      more: { patch: JSON.stringify({ x: 'y'.repeat(1_100_000) }) },
      code: 'no error',
      isStored: true,
    },
    'sent twice': { epoch: 2, seq: 5, more: {}, code: 'no error', isStored: true },
    'whose lease is lost': { epoch: 2, seq: 5, more: {}, code: 'lease_lost', isStored: false },
  } satisfies Record<
    string,
    { epoch: number; seq: number; more: Partial<LogEntry>; code: string; isStored: boolean }
  >
  const kinds = Object.keys(makers) as Kind[]

  test('commit exactly the right rows of any 64, and each caller gets its own answer', async ({
    database,
  }) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            { weight: 8, arbitrary: fc.constant<Kind>('good') },
            { weight: 3, arbitrary: fc.constantFrom(...kinds) },
          ),
          { minLength: 2, maxLength: 64 },
        ),
        async (rows) => {
          const { keys, logOf, stored } = await holdRuns(database, rows.length)
          const lost: LeaseGuard = {
            signal: heldLease().signal,
            check() {
              throw new MasonError('lease_lost', 'too old')
            },
          }
          const appends = rows.map((kind, n): Appending => {
            const { epoch, seq, more } = makers[kind]
            const lease = kind === 'whose lease is lost' ? { lease: lost } : {}
            return {
              log: logOf(keys[n] as Key, { epoch, ...lease }),
              first: entry(seq, { usage, ...more }),
            }
          })
          const codes = await Promise.all(
            appends.map(async ({ log, first }, n) => {
              const sends =
                rows[n] === 'sent twice' ? [log.append(first), log.append(first)] : [log.append(first)]
              return [...new Set(await Promise.all(sends.map(codeOf)))]
            }),
          )
          expect(codes).toEqual(rows.map((kind) => [makers[kind].code]))
          const found = await stored()
          for (const [n, kind] of rows.entries()) {
            const { isStored } = makers[kind]
            expect(found.get(keys[n]?.run_id as string), `${n}: ${kind}`).toMatchObject({
              attempts: isStored ? [appends[n]?.first.attempt_id] : [],
              next_seq: isStored ? 6 : 5,
              tokens: isStored ? 5 : 0,
              status: 'running',
            })
          }
        },
      ),
      { numRuns: 12 },
    )
  })

  test.for(['before', 'after'] as const)(
    'whose connection is lost %s their commit are each resolved by their attempt',
    async (when, { database }) => {
      let isBroken = false
      const breaking: Database = {
        ...database,
        async query<Row>(text: string, values: readonly unknown[] = [], options = {}) {
          const isBatch = text.includes('json_to_recordset') && text.includes('INSERT INTO actions')
          if (isBatch && !isBroken && when === 'before') {
            isBroken = true
            throw unavailable()
          }
          const done = await database.query<Row>(text, values, options)
          if (isBatch && !isBroken) {
            isBroken = true
            throw unavailable()
          }
          return done
        },
      }
      const { keys, logOf, stored } = await holdRuns(database, 6, breaking)
      await Promise.all(keys.map((key) => logOf(key).append(entry(5, { usage }))))
      expect(isBroken).toBe(true)
      for (const row of (await stored()).values())
        expect(row).toMatchObject({ next_seq: 6, tokens: 5, attempts: [expect.any(String)] })
    },
  )

  test('leave out a run whose row is locked, which goes alone and waits; the others do not', async ({
    database,
    elsewhere,
  }) => {
    // an embedded database has one session, and so no one who could hold the lock
    if (database.kind === 'embedded') return
    const { keys, logOf, stored } = await holdRuns(database, 8)
    const [lockedKey, ...others] = keys as [Key, ...Key[]]
    let release = (): void => {}
    let isLocked = false
    const holding = elsewhere.transaction(async (sql) => {
      await sql.query('SELECT FROM runs WHERE run_id = $1 FOR UPDATE', [lockedKey.run_id])
      isLocked = true
      await new Promise<void>((resolve) => {
        release = resolve
      })
    })
    await until('the lock', () => isLocked)
    let isDone = false
    const waiting = logOf(lockedKey)
      .append(entry(5))
      .then(() => {
        isDone = true
      })
    await Promise.all(others.map((key) => logOf(key).append(entry(5))))
    await Promise.all(others.map((key) => logOf(key).append(entry(6))))
    expect(isDone).toBe(false)
    release()
    await Promise.all([waiting, holding])
    expect((await stored()).get(lockedKey.run_id)).toMatchObject({ next_seq: 6 })
  })

  test('whose statement hangs longer than a third of a lease go on alone', async ({ database }) => {
    const asked: (number | undefined)[] = []
    const hanging: Database = {
      ...database,
      query<Row>(text: string, values: readonly unknown[] = [], options: { timeoutMs?: number } = {}) {
        if (!text.includes('SKIP LOCKED')) return database.query<Row>(text, values, options)
        asked.push(options.timeoutMs)
        return Promise.reject(unavailable())
      },
    }
    const { keys, logOf, stored } = await holdRuns(database, 3, hanging)
    await Promise.all(keys.map((key) => logOf(key).append(entry(5))))
    expect(new Set(asked)).toEqual(new Set([10_000]))
    for (const row of (await stored()).values()) expect(row.next_seq).toBe(6)
  })

  test('leave the queue as their lease is lost, also while another statement hangs', async ({ database }) => {
    let release = (): void => {}
    const hung = new Promise<void>((resolve) => {
      release = resolve
    })
    let asked = 0
    const slow: Database = {
      ...database,
      async query<Row>(text: string, values: readonly unknown[] = [], options = {}) {
        if (text.includes('INSERT INTO actions') && asked++ === 0) await hung
        return database.query<Row>(text, values, options)
      },
    }
    const { keys, logOf, stored } = await holdRuns(database, 2, slow)
    const [first, second] = keys as [Key, Key]
    const lease = new AbortController()
    const writing = logOf(first).append(entry(5))
    await until('the first statement', () => asked > 0)
    const waiting = codeOf(logOf(second, { lease: { signal: lease.signal, check() {} } }).append(entry(5)))
    lease.abort(new MasonError('lease_lost', 'another worker has this run'))
    expect(await waiting).toBe('lease_lost')
    release()
    await writing
    expect((await stored()).get(second.run_id)).toMatchObject({ next_seq: 5, attempts: [] })
  })
})
