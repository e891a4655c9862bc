import type { Clock, Log, Sql } from '../../state/ports.ts'
import type { Delta } from '../../state/run-view.ts'
import type { Hints } from '../queue/hints.ts'
import { repeatWork } from '../repeat-work.ts'

/** `action`: one was committed, `admitted`: a run was let in, and nothing else; `status`: anything may have changed. */
export type Change = 'action' | 'admitted' | 'status'

/** What a follower of a session is woken by: something was committed, or a token came. */
export type Follower = { onChange(change: Change): void; onDelta(delta: Delta): void }

const sessionsChannel = 'mason:sessions'
const cancelsChannel = 'mason:cancels'

type Message = { tenant: string; session_id: string } & ({ kind: Change } | { kind: 'delta'; delta: Delta })

/**
 * What can be seen of sessions from outside, each as one short text: their turns, their last action, and the states of
 * their unfinished runs. Every part is a short walk over an index, however long the session.
 */
const lookStatement = `
  SELECT f.key, concat_ws('|', s.turns,
    (SELECT max(a.seq) FROM actions a WHERE a.tenant = f.tenant AND a.session_id = f.session_id),
    (SELECT string_agg(r.run_id || r.status, ',' ORDER BY r.turn) FROM runs r
     WHERE r.tenant = f.tenant AND r.session_id = f.session_id AND r.status IN ('queued', 'running', 'input_required'))) AS mark
  FROM json_to_recordset($1::json) AS f(key text, tenant text, session_id text)
  JOIN sessions s ON s.tenant = f.tenant AND s.session_id = f.session_id`

/** In place of a mark, for a session that is not there any more. */
const gone = ''

/**
 * Tells the followers of this process that something happened in their sessions: at once by a hint, and within a
 * second by one batched look at the database, so that a lost hint costs a second and never an event.
 */
export const openFeed = async (options: { sql: Sql; hints: Hints; clock: Clock; log: Log }) => {
  const { sql, hints, clock, log } = options
  const followers = new Map<string, Set<Follower>>()
  const seen = new Map<string, string>()
  const cancelWatchers = new Set<() => void>()
  const keyOf = (tenant: string, sessionId: string): string => `${tenant}/${sessionId}`

  const tell = (message: Message): void => {
    for (const follower of followers.get(keyOf(message.tenant, message.session_id)) ?? [])
      if (message.kind === 'delta') follower.onDelta(message.delta)
      else follower.onChange(message.kind)
  }
  const deafToCancels = await hints.subscribe(cancelsChannel, () => {
    for (const watch of cancelWatchers) watch()
  })

  // a worker that nobody follows in need not read what all the others tell
  let hears = false
  let hearing: Promise<() => Promise<void>> | undefined
  const hear = async (): Promise<() => Promise<void>> => {
    const deaf = await hints.subscribe(sessionsChannel, (text) => {
      for (const message of JSON.parse(text) as Message[]) tell(message)
    })
    hears = true
    // what was told while nobody listened
    for (const group of followers.values()) for (const follower of group) follower.onChange('status')
    return deaf
  }

  // what is told in one turn of the event loop goes out as one hint, and the same change once
  let pending: string[] = []
  const flush = (): void => {
    if (pending.length > 0) hints.publish(sessionsChannel, `[${pending.join(',')}]`)
    pending = []
  }
  const publish = (message: Message): void => {
    const text = JSON.stringify(message)
    if (message.kind !== 'delta' && pending.includes(text)) return
    if (pending.length === 0) setImmediate(flush)
    pending.push(text)
  }

  const look = async (): Promise<void> => {
    if (followers.size === 0) return
    const keys = [...followers.keys()]
    const { rows } = await sql.query<{ key: string; mark: string }>(lookStatement, [
      JSON.stringify(
        keys.map((key) => {
          const slash = key.indexOf('/')
          return { key, tenant: key.slice(0, slash), session_id: key.slice(slash + 1) }
        }),
      ),
    ])
    const marks = new Map(rows.map(({ key, mark }) => [key, mark]))
    for (const key of keys) {
      const mark = marks.get(key) ?? gone
      const group = followers.get(key)
      if (!group || seen.get(key) === mark) continue
      seen.set(key, mark)
      for (const follower of group) follower.onChange('status')
    }
  }
  const looking = repeatWork(look, 1000, clock, log, 'looking for new actions')

  return {
    /** Something was committed in this session. */
    changed(tenant: string, sessionId: string, change: Change = 'status'): void {
      publish({ tenant, session_id: sessionId, kind: change })
    },
    streamed(tenant: string, sessionId: string, delta: Delta): void {
      publish({ tenant, session_id: sessionId, kind: 'delta', delta })
    },
    /** A run of this session is to be cancelled, or is gone; its worker looks at once. */
    cancelling(tenant: string, sessionId: string): void {
      publish({ tenant, session_id: sessionId, kind: 'status' })
      hints.publish(cancelsChannel, '')
    },
    onCancelling(watch: () => void): () => void {
      cancelWatchers.add(watch)
      return () => void cancelWatchers.delete(watch)
    },
    /** Follows a session until the function it gives is called. */
    follow(tenant: string, sessionId: string, follower: Follower): () => void {
      const key = keyOf(tenant, sessionId)
      const group = followers.get(key) ?? new Set()
      followers.set(key, group.add(follower))
      // whatever happened before it came, the next look wakes it
      seen.delete(key)
      if (!hears) hearing ??= hear()
      return () => {
        group.delete(follower)
        if (group.size > 0 || followers.get(key) !== group) return
        followers.delete(key)
        seen.delete(key)
      }
    },
    async close() {
      flush()
      await looking.stop()
      await deafToCancels()
      await (await hearing)?.()
    },
  }
}

export type Feed = Awaited<ReturnType<typeof openFeed>>
