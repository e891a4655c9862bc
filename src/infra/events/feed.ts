import type { Clock, Log, Sql } from '../../state/ports.ts'
import type { Delta } from '../../state/run-view.ts'
import type { Hints } from '../queue/hints.ts'
import { repeatWork } from '../runs/relay.ts'

/** What a follower of a session is woken by: something was committed, or a token came. */
export type Follower = { onChange(): void; onDelta(delta: Delta): void }

const channel = 'mason:sessions'

type Message = { tenant: string; session_id: string; delta?: Delta; cancel?: true }

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

  const unsubscribe = await hints.subscribe(channel, (text) => {
    const message = JSON.parse(text) as Message
    if (message.cancel) for (const watch of cancelWatchers) watch()
    for (const follower of followers.get(keyOf(message.tenant, message.session_id)) ?? [])
      message.delta ? follower.onDelta(message.delta) : follower.onChange()
  })

  /** What can be seen of a session from outside, as one text: its last action and the states of its runs. */
  const look = async (): Promise<void> => {
    if (followers.size === 0) return
    const { rows } = await sql.query<{ key: string; mark: string }>(
      `SELECT f.key, (SELECT string_agg(r.run_id || r.status || COALESCE(r.next_seq, 0), ',' ORDER BY r.turn)
         FROM runs r WHERE r.tenant = f.tenant AND r.session_id = f.session_id AND r.turn > s.turns - 5) AS mark
       FROM json_to_recordset($1::json) AS f(key text, tenant text, session_id text)
       JOIN sessions s ON s.tenant = f.tenant AND s.session_id = f.session_id`,
      [
        JSON.stringify(
          [...followers.keys()].map((key) => ({
            key,
            tenant: key.slice(0, key.indexOf('/')),
            session_id: key.slice(key.indexOf('/') + 1),
          })),
        ),
      ],
    )
    for (const { key, mark } of rows) {
      if (seen.get(key) === mark) continue
      seen.set(key, mark)
      for (const follower of followers.get(key) ?? []) follower.onChange()
    }
  }
  const looking = repeatWork(look, 1000, clock, log, 'looking for new actions')

  return {
    /** Something was committed in this session. */
    changed(tenant: string, sessionId: string): void {
      hints.publish(channel, JSON.stringify({ tenant, session_id: sessionId } satisfies Message))
    },
    streamed(tenant: string, sessionId: string, delta: Delta): void {
      hints.publish(channel, JSON.stringify({ tenant, session_id: sessionId, delta } satisfies Message))
    },
    /** A run of this session is to be cancelled; its worker looks at once. */
    cancelling(tenant: string, sessionId: string): void {
      hints.publish(
        channel,
        JSON.stringify({ tenant, session_id: sessionId, cancel: true } satisfies Message),
      )
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
      return () => {
        group.delete(follower)
        if (group.size > 0 || followers.get(key) !== group) return
        followers.delete(key)
        seen.delete(key)
      }
    },
    async close() {
      await looking.stop()
      await unsubscribe()
    },
  }
}

export type Feed = Awaited<ReturnType<typeof openFeed>>
