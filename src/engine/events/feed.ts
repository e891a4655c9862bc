import { repeatWork } from '../../infra/lib/repeat-work.ts'
import type { Hints } from '../../infra/queue/hints.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { openStatusesSql } from '../../state/run-status.ts'
import type { TextDelta } from '../../state/run-view.ts'

/**
 * `action`: only an action was committed; `claimed`: a run may have begun, or actions were committed, and no status has changed;
 * `admitted`: only a run was admitted; `status`: anything may have changed.
 */
export type SessionChange = 'action' | 'claimed' | 'admitted' | 'status'

/** What wakes a follower of a session: a commit, or streamed text; with `statusOnly` neither actions nor text. */
export type SessionFollower = {
  statusOnly?: boolean
  onChange(change: SessionChange): void
  onDelta(delta: TextDelta): void
}

const sessionsChannel = 'mason:sessions'
/** Actions and text: most hints are these, and a process that waits for the ends of runs alone reads none of them. */
const stepsChannel = 'mason:steps'
const cancelsChannel = 'mason:cancels'

type FeedMessage = { tenant: string; session_id: string } & (
  | { kind: SessionChange }
  | { kind: 'delta'; delta: TextDelta }
)

/**
 * The visible position of each session as two short texts: what a status depends on, its turns and the states of its unfinished runs,
 * and what changes as they work, whether they have begun and its last action. Every part is a short index scan, however long the session.
 */
const marksStatement = `
  SELECT f.key, concat_ws('|', s.turns, o.states) AS states, concat_ws('|', o.begun,
    (SELECT max(a.seq) FROM actions a WHERE a.tenant = s.tenant AND a.session_id = s.session_id)) AS progress
  FROM json_array_elements_text($1::json) AS f(key)
  JOIN sessions s ON s.tenant = split_part(f.key, '/', 1) AND s.session_id = split_part(f.key, '/', 2)
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE r.status = 'running') AS begun,
      string_agg(r.run_id || replace(r.status, 'running', 'queued') || r.run_at, ',' ORDER BY r.turn) AS states
    FROM runs r WHERE r.tenant = s.tenant AND r.session_id = s.session_id AND r.status IN ${openStatusesSql}) o`

/** The marks of a session; both are empty where it does not exist. */
type Marks = { states: string; progress: string }
const noMarks: Marks = { states: '', progress: '' }

/**
 * Notifies the followers in this process of changes in their sessions: at once by a hint, and within a second by one
 * batched query, so that a lost hint costs a second and never an event.
 */
export const openFeed = async (options: { sql: Sql; hints: Hints; clock: Clock; log: Log }) => {
  const { sql, hints, clock, log } = options
  const followers = new Map<string, Set<SessionFollower>>()
  const businessFollowers = new Map<string, Set<() => void>>()
  const seenMarks = new Map<string, Marks>()
  const cancelWatchers = new Set<() => void>()
  const keyOf = (businessId: string, sessionId: string): string => `${businessId}/${sessionId}`

  const notifyFollowers = (message: FeedMessage): void => {
    if (message.kind === 'status' || message.kind === 'admitted')
      for (const wake of businessFollowers.get(message.tenant) ?? []) wake()
    for (const follower of followers.get(keyOf(message.tenant, message.session_id)) ?? [])
      if (message.kind === 'delta') follower.onDelta(message.delta)
      else follower.onChange(message.kind)
  }
  const unsubscribeFromCancels = await hints.subscribe(cancelsChannel, () => {
    for (const watch of cancelWatchers) watch()
  })

  /** What is published within one turn of the event loop is one hint, with equal changes once. A process without followers reads none. */
  const openChannel = (name: string, isOften = false) => {
    let pending: string[] = []
    let subscribing: Promise<() => Promise<void>> | undefined
    const flush = (): void => {
      if (pending.length > 0) hints.publish(name, `[${pending.join(',')}]`, isOften)
      pending = []
    }
    const subscribe = async (): Promise<() => Promise<void>> => {
      const unsubscribe = await hints.subscribe(name, (text) => {
        for (const message of JSON.parse(text) as FeedMessage[]) notifyFollowers(message)
      })
      // for what was published before
      for (const group of followers.values()) for (const follower of group) follower.onChange('status')
      return unsubscribe
    }
    return {
      publish(message: FeedMessage): void {
        const text = JSON.stringify(message)
        if (message.kind !== 'delta' && pending.includes(text)) return
        if (pending.length === 0) setImmediate(flush)
        pending.push(text)
      },
      subscribe(): void {
        subscribing ??= subscribe()
      },
      flush,
      close: async (): Promise<void> => (await subscribing)?.(),
    }
  }
  const statuses = openChannel(sessionsChannel)
  const steps = openChannel(stepsChannel, true)
  const publish = (message: FeedMessage): void =>
    (message.kind === 'status' || message.kind === 'admitted' ? statuses : steps).publish(message)

  const pollMarks = async (): Promise<void> => {
    if (followers.size === 0) return
    const keys = [...followers.keys()]
    const { rows } = await sql.query<Marks & { key: string }>(marksStatement, [JSON.stringify(keys)])
    const found = new Map(rows.map(({ key, ...marks }) => [key, marks]))
    for (const key of keys) {
      const [marks, seen, group] = [found.get(key) ?? noMarks, seenMarks.get(key), followers.get(key)]
      const isSame = seen?.states === marks.states
      if (!group || (isSame && seen.progress === marks.progress)) continue
      seenMarks.set(key, marks)
      // who waits for a status reads nothing for an action
      for (const follower of group) follower.onChange(isSame ? 'claimed' : 'status')
    }
  }
  const polling = repeatWork(pollMarks, 1000, clock, log, 'polling for new actions')

  return {
    /** Something was committed in this session. */
    publishChange(businessId: string, sessionId: string, change: SessionChange = 'status'): void {
      publish({ tenant: businessId, session_id: sessionId, kind: change })
    },
    /** Text that a model streams. */
    publishDelta(businessId: string, sessionId: string, delta: TextDelta): void {
      publish({ tenant: businessId, session_id: sessionId, kind: 'delta', delta })
    },
    /** A run of this session has a cancel request, or was deleted; its worker polls at once. */
    publishCancel(businessId: string, sessionId: string): void {
      publish({ tenant: businessId, session_id: sessionId, kind: 'status' })
      hints.publish(cancelsChannel, '')
    },
    onCancel(watch: () => void): () => void {
      cancelWatchers.add(watch)
      return () => void cancelWatchers.delete(watch)
    },
    /** Follows a session until the returned function is called. */
    follow(businessId: string, sessionId: string, follower: SessionFollower): () => void {
      const key = keyOf(businessId, sessionId)
      const group = followers.get(key) ?? new Set()
      followers.set(key, group.add(follower))
      // the next poll wakes it, also for changes before it followed
      seenMarks.delete(key)
      statuses.subscribe()
      if (!follower.statusOnly) steps.subscribe()
      return () => {
        group.delete(follower)
        if (group.size > 0 || followers.get(key) !== group) return
        followers.delete(key)
        seenMarks.delete(key)
      }
    },
    /** Calls `wake` when a run of a business may have a new status; a hint may be lost. Until the returned function is called. */
    followBusiness(businessId: string, wake: () => void): () => void {
      const group = businessFollowers.get(businessId) ?? new Set()
      businessFollowers.set(businessId, group.add(wake))
      statuses.subscribe()
      return () => {
        group.delete(wake)
        if (group.size === 0 && businessFollowers.get(businessId) === group)
          businessFollowers.delete(businessId)
      }
    },
    async close() {
      for (const { flush } of [statuses, steps]) flush()
      await polling.stop()
      await Promise.all([unsubscribeFromCancels(), statuses.close(), steps.close()])
    },
  }
}

/** See `openFeed`. */
export type Feed = Awaited<ReturnType<typeof openFeed>>
