import type { Case, Variant } from '../case.ts'
import { followEvents } from '../support/event-stream.ts'
import { openConnection } from '../support/http-connection.ts'
import { startServed } from '../support/served.ts'
import { latencies } from '../support/statistics.ts'

/** Submits a run, follows it, and waits for its first action, which a worker process appended. */
const firstEvent: Variant = async (place) => {
  const { port } = await startServed(place)
  const connection = await openConnection(port)
  const once = async (): Promise<number> => {
    const since = performance.now()
    const { body } = await connection.post('/v1/runs', '{"prompt":"hello","user_id":"u1"}')
    const { id } = JSON.parse(body) as { id: string }
    let seen = Number.NaN
    await new Promise<void>((resolve) => {
      const leave = followEvents(port, `/v1/runs/${id}/events`, (name) => {
        if (name === 'action' && Number.isNaN(seen)) seen = performance.now() - since
        if (name !== 'done') return
        leave()
        resolve()
      })
    })
    return seen
  }
  for (let n = 0; n < place.count(100); n++) await once()
  const ms: number[] = []
  for (let n = 0; n < place.count(500); n++) ms.push(await once())
  connection.close()
  return latencies(ms)
}

const firstEventCase: Case = {
  about: 'from sending POST /v1/runs to the first action on the event stream, the worker another process',
  ours: { Mason: firstEvent },
}

export default firstEventCase
