import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMasonError } from '../state/errors.ts'
import { resolveCommandName } from './command-name.ts'
import type { RunGateway, RunHandle } from './gateway.ts'
import { createHttpClient, type HttpClient } from './http-client.ts'
import { streamHttpEvents } from './http-events.ts'

const maxSubmitAttempts = 4

/** A server, over its HTTP API. `note` gets a line for each lost connection. */
export const openHttpGateway = (
  target: { url: string; token: string | null },
  note: (line: string) => void,
): RunGateway => {
  const http = createHttpClient(target)
  return {
    offline: null,
    async submit(request) {
      const run = await submitOnce(http, request)
      return toRunHandle(http, run, note)
    },
    formatAnswerCommand: (runId, requestId) =>
      `curl -X POST ${target.url}/v1/runs/${runId}/input${target.token ? ' -H "Authorization: Bearer $MASON_TOKEN"' : ''} -H 'Content-Type: application/json' -d '{"request_id": "${requestId}", "answer": …}'`,
    formatContinueCommand: (sessionId, userId) =>
      `${resolveCommandName()} run --url ${target.url} --session ${sessionId} --user ${userId} "…"`,
    close: async () => {},
  }
}

/** The idempotency key makes a retry safe: the server returns the run that it has already created. */
const submitOnce = async (http: HttpClient, body: unknown): Promise<RunHandle['run']> => {
  const key = randomUUID()
  for (let tries = 1; ; tries++) {
    try {
      return (await http.post('/v1/runs', body, { 'Idempotency-Key': key })) as RunHandle['run']
    } catch (error) {
      if (!http.isTransient(error) || tries >= maxSubmitAttempts) throw error
      await sleep(250 * 2 ** tries)
    }
  }
}

const toRunHandle = (http: HttpClient, run: RunHandle['run'], note: (line: string) => void): RunHandle => ({
  run,
  events: (signal) => streamHttpEvents(http, run.id, note, signal),
  async cancel(reason) {
    await http.post(`/v1/runs/${run.id}/cancel`, { reason }).catch((error: unknown) => {
      if (!isMasonError(error, 'run_ended')) throw error
    })
  },
  async answer(requestId, answer) {
    await http.post(`/v1/runs/${run.id}/input`, { request_id: requestId, answer })
  },
})
