import type { Case, Variant } from '../case.ts'
import { addCard, agentPath } from '../support/agent-card.ts'
import { followEvents } from '../support/event-stream.ts'
import { openConnection } from '../support/http-connection.ts'
import { startServed } from '../support/served.ts'
import { median } from '../support/statistics.ts'

const subscribers = 500
const turns = 8

type Follow = (port: number, id: string, onEvent: (name: string) => void) => () => void

/** The worker stands still until all follow a run; then until the last of them knows that it has completed. */
const measure =
  (follow: Follow, last: string): Variant =>
  async (place) => {
    const { port, pids } = await startServed(place)
    await addCard(port)
    const client = await openConnection(port)
    const ms: number[] = []
    for (let turn = 0; turn < turns; turn++) {
      process.kill(pids.worker as number, 'SIGSTOP')
      const message = { kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hello' }] }
      const { body } = await client.post(
        agentPath,
        JSON.stringify({
          ...{ jsonrpc: '2.0', id: turn, method: 'message/send' },
          params: { message: { ...message, messageId: `m${turn}` }, configuration: { blocking: false } },
        }),
      )
      const { id } = (JSON.parse(body) as { result: { id: string } }).result
      const count = place.count(subscribers)
      const streams: (() => void)[] = []
      let since = 0
      await new Promise<void>((resolve) => {
        let [open, ended] = [0, 0]
        for (let n = 0; n < count; n++)
          streams.push(
            follow(port, id, (name) => {
              if (name === 'open' && ++open === count) {
                since = performance.now()
                process.kill(pids.worker as number, 'SIGCONT')
              }
              if (name === last && ++ended === count) resolve()
            }),
          )
      })
      ms.push(performance.now() - since)
      for (const leave of streams) leave()
    }
    client.close()
    return { 'ms until the last has the end': median(ms) }
  }

const subscribe: Follow = (port, id, onEvent) =>
  followEvents(port, agentPath, onEvent, {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { id } }),
    pattern: /"state":"(\w+)"/g,
  })

const followRun: Follow = (port, id, onEvent) => followEvents(port, `/v1/runs/${id}/events`, onEvent)

const a2aStream: Case = {
  about: 'a no-op run that 500 agents follow by A2A tasks/resubscribe, beside our own events of a run',
  ours: { 'A2A tasks/resubscribe': measure(subscribe, 'completed') },
  beside: { 'GET /v1/runs/{id}/events': measure(followRun, 'done') },
}

export default a2aStream
