import type { Case, Variant } from '../case.ts'
import { query } from '../support/database.ts'
import { followEvents } from '../support/event-stream.ts'
import { openConnection } from '../support/http-connection.ts'
import { actionsOf } from '../support/no-op-runs.ts'
import { startServed } from '../support/served.ts'
import { median } from '../support/statistics.ts'

const clients = 500
const rounds = 5

/** All clients follow one session; a run of 20 actions begins there; until the last client has the last of them. */
const fanOut: Variant = async (place) => {
  const { port } = await startServed(place, { rounds })
  const submit = await openConnection(port)
  const run = (): Promise<unknown> =>
    submit.post('/v1/runs', '{"prompt":"hello","user_id":"u1","session_id":"followed"}')
  await submit.post('/v1/runs/wait', '{"prompt":"hello","user_id":"u1","session_id":"followed"}')

  let seen = 0
  let reached: { count: number; resolve(): void } | null = null
  const streams: (() => void)[] = []
  for (let n = 0; n < place.count(clients); n++)
    streams.push(
      followEvents(port, '/v1/sessions/followed/events', (name) => {
        if (name === 'action' && ++seen === reached?.count) reached.resolve()
      }),
    )
  const until = (count: number): Promise<void> =>
    new Promise((resolve) => {
      reached = { count, resolve }
      if (seen >= count) resolve()
    })
  const each = actionsOf(rounds) * streams.length
  // the run that is over, replayed to everybody
  await until(each)

  const ms: number[] = []
  const afterFirst: number[] = []
  for (let turn = 2; turn <= 9; turn++) {
    const since = Date.now()
    await Promise.all([run(), until(each * turn)])
    const last = Date.now()
    const [row] = await query<{ first: number }>(
      place,
      'SELECT extract(epoch FROM min(created_at))::float8 * 1000 AS first FROM actions WHERE turn = $1',
      [turn],
    )
    ms.push(last - since)
    afterFirst.push(last - (row?.first ?? Number.NaN))
  }
  for (const leave of streams) leave()
  submit.close()
  return { 'ms from submit': median(ms), 'ms from first commit': median(afterFirst) }
}

const sse: Case = {
  about: 'a run of 20 actions, followed live by 500 clients of one API process, until the last has all',
  ours: { Mason: fanOut },
}

export default sse
