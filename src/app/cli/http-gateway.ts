import { createClient } from '../../client/create-client.ts'
import type { ServerTarget } from '../../client/http.ts'
import { resolveCommandName } from './command-name.ts'
import { ignoreEnded, type RunGateway } from './gateway.ts'

const reconnectMs = 60_000

/** What a person at a terminal does about a server that does not answer, or refuses the token. */
export const serverRemedies = (
  unauthorized = 'pass the token of the business with --token or MASON_TOKEN',
): ServerTarget['remedies'] => ({
  unreachable: 'start `mason serve` there, or correct --url or MASON_URL',
  unauthorized,
})

/** A server, over its HTTP API. `note` gets a line for each lost connection. */
export const openHttpGateway = (
  target: { url: string; token: string | null },
  note: (line: string) => void,
): RunGateway => {
  const client = createClient({ ...target, remedies: serverRemedies() })
  return {
    offline: null,
    async submit(request) {
      const run = await client.submit(request)
      return {
        run,
        events: (signal) =>
          client.events(
            { run_id: run.id },
            {
              signal,
              reconnectMs,
              onConnection: (state) =>
                note(state === 'lost' ? 'connection lost, reconnecting …' : 'reconnected'),
            },
          ),
        cancel: (reason) => ignoreEnded(client.cancel(run.id, reason)),
        answer: async (requestId, answer) => void (await client.answer(run.id, requestId, answer)),
      }
    },
    formatAnswerCommand: (runId, requestId) =>
      `curl -X POST ${target.url}/v1/runs/${runId}/input${target.token ? ' -H "Authorization: Bearer $MASON_TOKEN"' : ''} -H 'Content-Type: application/json' -d '{"request_id": "${requestId}", "answer": …}'`,
    formatContinueCommand: (sessionId, userId) =>
      `${resolveCommandName()} run --url ${target.url} --session ${sessionId} --user ${userId} "…"`,
    close: async () => {},
  }
}
