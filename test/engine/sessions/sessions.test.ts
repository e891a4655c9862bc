// backends: either

import { describe, expect } from 'vitest'
import type { BusinessApi } from '../../../src/app/api.ts'
import { createRunLog } from '../../../src/engine/runs/run-log.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { sha256 } from '../../../src/infra/lib/ids.ts'
import type { Page } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { runtimeTest as test } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { appendAction, codeOf, count, entry, readContent, until } from '../../support/runs.ts'
import { deadline, eventsOf, nodesOf, type TestRuntime } from '../../support/test-runtime.ts'

let model: FakeModel
let runtime: TestRuntime
let database: Database

test.beforeAll(({ database: d, model: m, runtime: r }) => {
  ;[database, model, runtime] = [d, m, r]
})

const api = (): BusinessApi => runtime.of('default')
const script = (...planner: object[]) => {
  model.reset()
  model.script({ planner } as never)
}
const calculate = { tool_calls: [{ name: 'calculate', arguments: { expression: '1+1' } }] }

/** A session of two turns: ids 1 to 8, and 9 to 13. */
const twoTurns = async () => {
  const session_id = unique('s')
  script(calculate, { text: 'Two.' })
  const first = await runtime.complete({ prompt: 'one and one', session_id })
  script({ text: 'Bye.' })
  const second = await runtime.complete({ prompt: 'bye', session_id })
  return { session_id, first, second }
}

/** All items of a list, page by page. */
const pages = async <Item>(read: (cursor?: string) => Promise<Page<Item>>): Promise<Item[]> => {
  const items: Item[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await read(cursor)
    items.push(...page.data)
    cursor = page.next_cursor
  }
  return items
}

describe('a session', () => {
  test('shows its turns with prompt, goal, answer and usage', async () => {
    const { session_id, first, second } = await twoTurns()
    expect(await api().session(session_id)).toMatchObject({
      id: session_id,
      user_id: 'u1',
      turns: [
        {
          turn: 1,
          run_id: first.id,
          status: 'completed',
          prompt: 'one and one',
          answer: 'Two.',
          usage: first.usage,
        },
        { turn: 2, run_id: second.id, prompt: 'bye', answer: 'Bye.', goal: expect.any(String) },
      ],
    })
    expect(await api().session('nowhere')).toBeNull()
    expect(await runtime.of(unique('b')).session(session_id)).toBeNull()
  })

  test('shows the goal of each turn as its actions last said it', async () => {
    const { session_id } = await twoTurns()
    const stated = (await api().session(session_id))?.turns.map((turn) => turn.goal)
    const state = await runtime.stateOf((await api().session(session_id))?.turns[1]?.run_id ?? '')
    expect(stated).toEqual(state.task_goals)
  })
})

describe('lists', () => {
  test('page through sessions and runs without a gap or a repeat, also when all began at one moment', async () => {
    const business = unique('b')
    const other = runtime.of(business)
    const runs: string[] = []
    // far in the future, so that no worker takes them
    for (let at = 0; at < 17; at++)
      runs.push(
        (await other.submit({ prompt: 'x', user_id: at % 2 ? 'u1' : 'u2', delay_ms: 86_400_000 })).run.id,
      )
    for (const table of ['runs', 'sessions'])
      await database.query(
        `UPDATE ${table} SET created_at = '2026-01-01 00:00:00.123456+00' WHERE tenant = $1`,
        [business],
      )
    const page = (cursor?: string) => ({ limit: 4, ...(cursor && { cursor }) })
    const listed = await pages((cursor) => other.runs(page(cursor)))
    expect(listed.map(({ id }) => id).sort()).toEqual(runs.toSorted())
    expect(listed.map(({ id }) => id)).toEqual(
      listed
        .map(({ id }) => id)
        .toSorted()
        .toReversed(),
    )
    const sessions = await pages((cursor) => other.sessions(page(cursor)))
    expect(new Set(sessions.map(({ id }) => id)).size).toBe(17)
    const mine = await pages((cursor) => other.sessions({ user_id: 'u1', ...page(cursor) }))
    expect(mine).toHaveLength(8)
    expect(await pages((cursor) => other.runs({ status: 'completed', ...page(cursor) }))).toEqual([])
    expect(
      await pages((cursor) => other.runs({ user_id: 'u2', status: 'queued', ...page(cursor) })),
    ).toHaveLength(9)
    expect((await other.runs({ limit: 17 })).next_cursor).toBeNull()
  })

  test('stay stable for a caller that pages while new ones arrive', async () => {
    const other = runtime.of(unique('b'))
    const submit = () => other.submit({ prompt: 'x', user_id: 'u', delay_ms: 86_400_000 })
    const old = [await submit(), await submit(), await submit()].map(({ run }) => run.id)
    // the embedded database counts whole milliseconds, and they may all be of one
    for (const [at, id] of old.entries())
      await database.query(
        `UPDATE runs SET created_at = clock_timestamp() - $2::int * interval '1 minute' WHERE run_id = $1`,
        [id, old.length - at],
      )
    const first = await other.runs({ limit: 2 })
    await submit()
    const rest = await other.runs({ limit: 2, cursor: first.next_cursor ?? '' })
    expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(old.toReversed())
  })

  test('refuse a cursor that is not theirs', async () => {
    const forge = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const cursors = [
      'x',
      forge({ at: '2026-02-31 00:00:00+00', id: 'run_1' }),
      forge({ at: '2026-01-01 99:00:00+00', id: 'run_1' }),
      forge({ at: '0000-01-01 00:00:00+00', id: 'run_1' }),
      forge({ at: '2026-01-01 00:00:00+99:99', id: 'run_1' }),
      forge({ at: "'; DROP TABLE runs", id: 'run_1' }),
      forge({ at: '2026-01-01 00:00:00+00', id: 'a\u0000' }),
    ]
    for (const cursor of cursors)
      expect(await codeOf(api().runs({ limit: 2, cursor }))).toBe('invalid_request')
  })
})

describe('deleting a session', () => {
  test('leaves nothing of it, and nothing of others is touched', async () => {
    const { session_id, first } = await twoTurns()
    const kept = await twoTurns()
    expect(await runtime.of(unique('b')).deleteSession(session_id)).toBe(false)
    expect(await api().deleteSession(session_id)).toBe(true)
    expect(await api().deleteSession(session_id)).toBe(false)
    for (const table of ['runs', 'actions', 'sessions'])
      expect(await count(database, `${table} WHERE session_id = $1`, [session_id])).toBe(0)
    for (const table of ['run_requests', 'run_results', 'outbox'])
      expect(await count(database, `${table} WHERE run_id = $1`, [first.id])).toBe(0)
    expect(await api().run(first.id)).toBeNull()
    expect(await api().state(first.id, true)).toBeNull()
    checkInvariants(await runtime.stateOf(kept.second.id))
  })

  test('takes the blobs that only it held, and leaves those of others', async () => {
    const [mine, shared] = [Buffer.from(unique('mine')), Buffer.from(unique('shared'))]
    const file = (name: string, bytes: Buffer) => ({
      name,
      type: 'text/plain',
      content_base64: bytes.toString('base64'),
    })
    const admit = async (...files: ReturnType<typeof file>[]) =>
      (await api().submit({ prompt: 'x', user_id: 'u1', delay_ms: 86_400_000, files })).run
    const first = await admit(file('a', mine), file('b', shared))
    const second = await admit(file('c', shared))
    const log = createRunLog(database, { tenant: 'default', run_id: first.id, epoch: 0 })
    const result = await log.storeBlob(Buffer.from(unique('a large result')))
    const held = (hash: string) => count(database, 'blobs WHERE sha256 = $1', [hash])
    expect(await held(result)).toBe(1)
    await api().deleteSession(first.session_id)
    expect([await held(sha256(mine)), await held(sha256(shared)), await held(result)]).toEqual([0, 1, 0])
    await api().deleteSession(second.session_id)
    expect(await held(sha256(shared))).toBe(0)
  })

  test('also ends one that is running, with what waits behind it; its name can be used anew', async () => {
    const session_id = unique('s')
    script({ hold: true, text: 'late' })
    const { run } = await api().submit({ prompt: 'x', user_id: 'u1', session_id })
    const behind = await api().submit({ prompt: 'y', user_id: 'u1', session_id })
    await until(
      'the model call',
      () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
    )
    expect(await api().deleteSession(session_id)).toBe(true)
    await until('the model call to be gone', () => model.open() === 0)
    expect(await api().run(behind.run.id)).toBeNull()
    script({ text: 'New.' })
    const anew = await runtime.complete({ prompt: 'new', user_id: 'u2', session_id })
    expect(anew).toMatchObject({ turn: 1, answer: 'New.' })
    expect(run.id).not.toBe(anew.id)
  })

  test('while its worker appends leaves no action behind', async () => {
    for (let round = 0; round < 5; round++) {
      const { run } = await runtime.of('default').submit({ prompt: 'x', user_id: 'u1', delay_ms: 86_400_000 })
      await database.query(
        `UPDATE runs SET status = 'running', epoch = 1, first_seq = 1, next_seq = 1, lease_until = clock_timestamp() + interval '1 hour' WHERE run_id = $1`,
        [run.id],
      )
      const fence = { tenant: 'default', run_id: run.id, epoch: 1 }
      const appending = (async () => {
        for (let seq = 1; ; seq++) {
          const code = await codeOf(appendAction(database, fence, entry(seq)))
          if (code !== 'no error') return code
        }
      })()
      await until('an action', () => count(database, 'actions WHERE run_id = $1', [run.id]))
      await api().deleteSession(run.session_id)
      expect(await appending).toBe('lease_lost')
      expect(await count(database, 'actions WHERE run_id = $1', [run.id])).toBe(0)
    }
  })
})

describe('a fork', () => {
  test('at the end of a turn holds everything up to there, and goes its own way', async () => {
    const { session_id, first } = await twoTurns()
    const fork = await api().fork(session_id, 8)
    expect(fork?.turns).toMatchObject([
      { turn: 1, status: 'completed', prompt: 'one and one', answer: 'Two.' },
    ])
    const id = fork?.turns[0]?.run_id ?? ''
    expect(id).not.toBe(first.id)
    expect(await runtime.stateOf(id)).toEqual(await runtime.stateOf(first.id))
    expect(await api().run(id)).toMatchObject({
      answer: 'Two.',
      usage: first.usage,
      finish_reason: 'answered',
    })
    expect((await eventsOf(api(), id)).length).toBe((await eventsOf(api(), first.id)).length)
    script({ text: 'Another way.' })
    const next = await runtime.complete({ prompt: 'go on', session_id: fork?.id ?? '' })
    expect(next).toMatchObject({ turn: 2, answer: 'Another way.' })
    expect((await api().session(session_id))?.turns[1]?.answer).toBe('Bye.')
  })

  test('keeps the summary of its session when that covers no more than the fork holds', async () => {
    const session_id = unique('ses')
    const run_id = unique('run')
    const body = JSON.stringify({
      node: 'n',
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    })
    await database.query(
      `WITH s AS (INSERT INTO sessions (tenant, session_id, user_id, turns, summary, summary_turn) VALUES ('default', $1, 'u', 1, 'known', 1)),
         r AS (INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at, first_seq, next_seq)
           VALUES ('default', $2, $1, 1, 'completed', clock_timestamp(), 1, 3)),
         q AS (INSERT INTO run_requests (tenant, run_id, user_id, request, metadata) VALUES ('default', $2, 'u', '{"prompt":"hi"}', '{}'))
       INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
       SELECT 'default', $1, seq, $2, 1, 1, $2 || seq, $3::json, '{}' FROM generate_series(1, 2) seq`,
      [session_id, run_id, body],
    )
    const summaryAt = async (action: number) => {
      const fork = await api().fork(session_id, action)
      const { rows } = await database.query(
        'SELECT summary, summary_turn FROM sessions WHERE session_id = $1',
        [fork?.id],
      )
      return rows[0]
    }
    expect(await summaryAt(2)).toEqual({ summary: 'known', summary_turn: 1 })
    expect(await summaryAt(1)).toEqual({ summary: '', summary_turn: 0 })
  })

  test('in the middle of a run cuts it there: cancelled, with one end, and the tokens up to there', async () => {
    const { session_id, first } = await twoTurns()
    const whole = await runtime.stateOf(first.id)
    for (const at of [1, 3, 5, 7]) {
      const fork = await api().fork(session_id, at)
      const id = fork?.turns[0]?.run_id ?? ''
      const state = await runtime.stateOf(id)
      checkInvariants(state)
      expect(nodesOf(state)).toEqual([...nodesOf(whole).slice(0, at), 'end'])
      expect(state.action_history[0]?.slice(0, at)).toEqual(whole.action_history[0]?.slice(0, at))
      const run = await api().run(id)
      expect(run).toMatchObject({
        status: 'cancelled',
        answer: null,
        finish_reason: null,
        usage: state.usage[0],
      })
      expect((await eventsOf(api(), id)).at(-1)).toEqual({ event: 'done', data: run })
      script({ text: 'On.' })
      expect((await runtime.complete({ prompt: 'on', session_id: fork?.id ?? '' })).turn).toBe(2)
    }
  })

  test('of a run that is still at work is refused, and one of the turn before it is made', async () => {
    const { session_id } = await twoTurns()
    script({ hold: true, text: 'Done.' })
    const { run } = await api().submit({ prompt: 'x', user_id: 'u1', session_id })
    await until(
      'the model call',
      () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
    )
    const refused = await api()
      .fork(session_id, 14)
      .catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'in_use', detail: { users: [{ kind: 'run', id: run.id }] } })
    const fork = await api().fork(session_id, 13)
    checkInvariants(await runtime.stateOf(fork?.turns[1]?.run_id ?? ''))
    model.release()
    expect((await api().wait(run.id, deadline())).status).toBe('completed')
    checkInvariants(await runtime.stateOf(run.id))
  })

  test('of a fork, and of a session with a turn that never began, keeps the numbers of its turns', async () => {
    const session_id = unique('s')
    script({ hold: true, text: 'One.' })
    const first = await api().submit({ prompt: 'one', user_id: 'u1', session_id })
    const second = await api().submit({ prompt: 'two', user_id: 'u1', session_id })
    await api().cancel(second.run.id, undefined)
    await until(
      'the model call',
      () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
    )
    model.release()
    await api().wait(first.run.id, deadline())
    script({ text: 'Three.' })
    const third = await api().submit({ prompt: 'three', user_id: 'u1', session_id })
    await api().wait(third.run.id, deadline())
    const fork = await api().fork(session_id, 10)
    const again = await api().fork(fork?.id ?? '', 10)
    expect(again?.turns.map(({ turn, status }) => [turn, status])).toEqual([
      [1, 'completed'],
      [2, 'cancelled'],
      [3, 'completed'],
    ])
    const state = await runtime.stateOf(again?.turns[2]?.run_id ?? '')
    expect(state).toEqual(await runtime.stateOf(third.run.id))
  })

  test('at an action that is not there names the field; of another business there is no such session', async () => {
    const { session_id } = await twoTurns()
    for (const id of [14, 0, 99_999_999_999]) {
      const refused = await api()
        .fork(session_id, id)
        .catch((error: unknown) => error)
      expect(refused).toMatchObject({
        code: 'invalid_request',
        detail: {
          errors: [
            {
              pointer: '/action_id',
              detail: `is not an action of session "${session_id}"; its actions are 1 to 13`,
            },
          ],
        },
      })
    }
    expect(await runtime.of(unique('b')).fork(session_id, 1)).toBeNull()
    expect(await api().fork('nowhere', 1)).toBeNull()
  })

  test('goes on holding the files of its session when that one is deleted', async () => {
    const session_id = unique('s')
    script({ text: 'Seen.' })
    const bytes = Buffer.from(unique('bytes'))
    const files = [{ name: 'a.txt', type: 'text/plain', content_base64: bytes.toString('base64') }]
    const run = await runtime.complete({ prompt: 'see', session_id, files })
    const fork = await api().fork(session_id, 2)
    const hash = sha256(bytes)
    await api().deleteSession(session_id)
    const forked = fork?.turns[0]?.run_id ?? ''
    expect(await readContent(await api().blob(forked, hash))).toEqual(bytes)
    expect(await api().blob(run.id, hash)).toBeNull()
    await api().deleteSession(fork?.id ?? '')
    expect(await count(database, 'blobs WHERE sha256 = $1', [hash])).toBe(0)
    expect(await count(database, 'blob_uses WHERE sha256 = $1', [hash])).toBe(0)
  })
})
