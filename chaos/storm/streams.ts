import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { HttpClient } from '../fleet/http-client.ts'
import { nodesOf, promptOf, type Step } from '../fleet/job.ts'
import type { Followed } from './reader.ts'

/** A stream that can be followed, and how many actions it will have brought in the end. */
export type Stream = { path: string; actions: number; turn: number }

/** Submits sessions of two turns each; gives their streams, of the sessions and of each run. */
export const submitSessions = async (
  client: HttpClient,
  names: readonly string[],
  steps: readonly Step[],
  accepted: Set<string>,
): Promise<Stream[]> => {
  const actions = nodesOf(steps).length
  const streams: Stream[] = []
  for (const session_id of names) {
    for (const turn of [1, 2]) {
      const name = `${session_id}.t${turn}`
      const { status, body } = await client.post('/v1/runs', {
        prompt: promptOf(name, steps),
        user_id: 'storm',
        session_id,
      })
      if (status !== 202)
        throw new Error(`a run was not accepted but answered ${status}: ${JSON.stringify(body)}`)
      accepted.add(name)
      streams.push({ path: `/v1/runs/${body.id}/events`, actions, turn })
    }
    streams.push({ path: `/v1/sessions/${session_id}/events`, actions: 2 * actions, turn: 2 })
  }
  return streams
}

type Logged = { first: number; actions: number; digest: string }
type Row = {
  session_id: string
  run_id: string
  turn: number
  seq: number
  body: object
  created_at: Date
  ms: number
  epoch: number
  worker: string
}

const toData = ({ seq, run_id, turn, body, created_at, ms, epoch, worker }: Row): object => ({
  ...{ id: seq, ...body, run_id, turn, at: created_at.toISOString() },
  ...{ started_at: new Date(created_at.getTime() - ms).toISOString(), ms, attempt: epoch, worker },
})

/** What each stream must have brought, from the rows of the action log. */
const loggedStreams = async (witness: pg.Client): Promise<Map<string, Logged>> => {
  const { rows } = await witness.query<Row>(
    'SELECT session_id, run_id, turn, seq, body, created_at, ms, epoch, worker FROM actions ORDER BY session_id, seq',
  )
  const entries = new Map<string, Row[]>()
  for (const row of rows)
    for (const path of [`/v1/sessions/${row.session_id}/events`, `/v1/runs/${row.run_id}/events`])
      entries.set(path, [...(entries.get(path) ?? []), row])
  const logged = new Map<string, Logged>()
  for (const [path, rowsOfPath] of entries) {
    const hash = createHash('sha256')
    for (const row of rowsOfPath) hash.update(`${JSON.stringify(toData(row))}\n`)
    logged.set(path, {
      first: rowsOfPath[0]?.seq ?? 0,
      actions: rowsOfPath.length,
      digest: hash.digest('hex'),
    })
  }
  return logged
}

/** What is wrong with what clients saw, each compared with the action log. */
export const compareWithLog = async (
  witness: pg.Client,
  followed: readonly Followed[],
): Promise<string[]> => {
  const logged = await loggedStreams(witness)
  return followed.flatMap((seen) => {
    const faults = [...seen.faults]
    const log = logged.get(seen.path)
    if (!seen.done) faults.push(`never saw the end; ${seen.actions} actions, ${seen.drops} drops`)
    if (seen.gaps > 0) faults.push(`${seen.gaps} gaps`)
    if (seen.repeats > 0) faults.push(`${seen.repeats} actions came again`)
    for (const [status, times] of Object.entries(seen.refused))
      faults.push(`answered ${status} ${times} times`)
    if (!log) faults.push('the log knows nothing of it')
    else if (log.actions !== seen.actions || log.first !== seen.first || log.digest !== seen.digest)
      faults.push(
        `saw ${seen.actions} actions from ${seen.first}; the log has ${log.actions} from ${log.first}`,
      )
    return faults.map((fault) => `client ${seen.client} on ${seen.path}: ${fault}`)
  })
}
