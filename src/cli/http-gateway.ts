import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMasonError } from '../state/errors.ts'
import { commandName } from './command-name.ts'
import type { Followed, Gateway } from './gateway.ts'
import { createHttp, type Http } from './http.ts'
import { followEvents } from './http-events.ts'

const submitTries = 4

/** A Mason somewhere else, over its HTTP API. `note` is told of lost connections. */
export const openHttpGateway = (
  target: { url: string; token: string | null },
  note: (line: string) => void,
): Gateway => {
  const http = createHttp(target)
  return {
    offline: null,
    async submit(request) {
      const run = await submitOnce(http, request)
      return followed(http, run, note)
    },
    howToAnswer: (runId, requestId) =>
      `curl -X POST ${target.url}/v1/runs/${runId}/input${target.token ? ' -H "Authorization: Bearer $MASON_TOKEN"' : ''} -H 'Content-Type: application/json' -d '{"request_id": "${requestId}", "answer": …}'`,
    howToGoOn: (sessionId, userId) =>
      `${commandName()} run --url ${target.url} --session ${sessionId} --user ${userId} "…"`,
    close: async () => {},
  }
}

/** The key makes trying again safe: the server knows the run it has made already. */
const submitOnce = async (http: Http, body: unknown): Promise<Followed['run']> => {
  const key = randomUUID()
  for (let tries = 1; ; tries++) {
    try {
      return (await http.post('/v1/runs', body, { 'Idempotency-Key': key })) as Followed['run']
    } catch (error) {
      if (!http.isPassing(error) || tries >= submitTries) throw error
      await sleep(250 * 2 ** tries)
    }
  }
}

const followed = (http: Http, run: Followed['run'], note: (line: string) => void): Followed => ({
  run,
  events: (signal) => followEvents(http, run.id, note, signal),
  async cancel(reason) {
    await http.post(`/v1/runs/${run.id}/cancel`, { reason }).catch((error: unknown) => {
      if (!isMasonError(error, 'run_ended')) throw error
    })
  },
  async answer(requestId, answer) {
    await http.post(`/v1/runs/${run.id}/input`, { request_id: requestId, answer })
  },
})
