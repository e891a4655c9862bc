import type { Config } from '../infra/config.ts'
import { createScrubber, type Scrubber } from '../infra/secrets/scrubber.ts'
import { isMasonError, MasonError } from '../state/errors.ts'
import type { Log } from '../state/ports.ts'
import { commandName } from './command-name.ts'
import type { Gateway } from './gateway.ts'

/** A runtime in this process, worker included. */
export const openLocalGateway = async (
  config: Config,
  log: Log,
  scrubber: Scrubber = createScrubber(),
): Promise<Gateway> => {
  const { openRuntime } = await import('../runtime.ts')
  const runtime = await openRuntime(config, { log, scrubber }).catch(explainLock)
  await runtime.startWorker({ concurrency: config.concurrency })
  const api = runtime.of('default')
  return {
    offline: runtime.models.describe().offline,
    async submit(request) {
      const { run } = await api.submit(request)
      return {
        run,
        events: (signal) => api.events({ run_id: run.id }, 0, signal),
        async cancel(reason) {
          await api.cancel(run.id, reason).catch((error: unknown) => {
            if (!isMasonError(error, 'run_ended')) throw error
          })
        },
        async answer(requestId, answer) {
          await api.answer(run.id, requestId, answer)
        },
      }
    },
    howToAnswer: (runId, requestId) =>
      `${commandName()} serve, then POST /v1/runs/${runId}/input {"request_id": "${requestId}", "answer": …}`,
    howToGoOn: (sessionId, userId) => `${commandName()} run --session ${sessionId} --user ${userId} "…"`,
    close: () => runtime.close(10_000),
  }
}

/** Whoever runs one prompt most likely has a `mason serve` on the same folder. */
const explainLock = (error: unknown): never => {
  if (!isMasonError(error, 'data_dir_locked')) throw error
  throw new MasonError('data_dir_locked', error.message, {
    remedy:
      'if that is `mason serve`, hand the run to it with --url http://127.0.0.1:8080; else stop that process or choose another DATA_DIR',
    detail: error.detail,
    cause: error,
  })
}
