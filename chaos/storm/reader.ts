import { createHash } from 'node:crypto'
import type { Frame } from './frames.ts'

/** One client's stream. `actions`: how many it will have been given when all is over; `turn`: the last one's. */
export type FollowTask = {
  client: number
  path: string
  actions: number
  turn: number
  drops: number
  seed: number
}

export type Followed = {
  client: number
  path: string
  first: number
  actions: number
  /** Of the data of all actions in the order they came. */
  digest: string
  drops: number
  connections: number
  done: boolean
  gaps: number
  repeats: number
  /** Answers that were no stream, by status. */
  refused: Record<string, number>
  faults: string[]
}

/** What one client was given, over all of its connections. */
export type Reader = {
  seen: Followed
  last(): number
  /** Actions seen by all connections. */
  count(): number
  take(frame: Frame): void
  isOver(): boolean
  refuse(status: number): void
  fault(text: string): void
  result(): Followed
}

export const createReader = (task: FollowTask): Reader => {
  const hash = createHash('sha256')
  const seen: Followed = {
    client: task.client,
    path: task.path,
    first: 0,
    actions: 0,
    digest: '',
    drops: 0,
    connections: 0,
    done: false,
    gaps: 0,
    repeats: 0,
    refused: {},
    faults: [],
  }
  let last = 0
  const isSession = task.path.startsWith('/v1/sessions/')
  const takeAction = (id: number, data: string): void => {
    if (seen.first === 0) seen.first = id
    else if (id <= last) return void seen.repeats++
    else if (id !== last + 1) seen.gaps++
    last = id
    seen.actions++
    hash.update(data).update('\n')
  }
  return {
    seen,
    result: () => ({ ...seen, digest: hash.digest('hex') }),
    last: () => last,
    count: () => seen.actions,
    isOver: () => seen.done,
    refuse: (status) => {
      seen.refused[status] = (seen.refused[status] ?? 0) + 1
    },
    fault: (text) => void seen.faults.push(text),
    take({ event, id, data }) {
      if (event === 'action') return takeAction(Number(id), data)
      // a browser comes back with the id of whatever came last: a snapshot's must skip nothing
      if (id !== '' && Number(id) !== last) seen.faults.push(`${event} carried id ${id} after action ${last}`)
      if (event === 'done' && !isSession) seen.done = true
      // a session's stream tells `done` to those who are there at that moment, and to all others the status
      const over = event === 'done' || event === 'status'
      if (isSession && over && last >= task.actions) {
        const { turn, status } = JSON.parse(data) as { turn: number; status: string }
        if (turn === task.turn && status === 'completed') seen.done = true
      }
    },
  }
}
