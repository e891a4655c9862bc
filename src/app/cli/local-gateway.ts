import type { BusinessRuns } from '../../engine/runs/business-runs.ts'
import type { GraphInfo } from '../../graph/definitions.ts'
import type { Config } from '../../infra/config/config.ts'
import { createScrubber, type Scrubber } from '../../infra/secrets/scrubber.ts'
import type { Log } from '../../state/ports/log.ts'
import { rulesOnly } from '../../state/ports/models.ts'
import type { RuntimeOptions } from '../runtime-options.ts'
import { resolveCommandName } from './command-name.ts'
import { ignoreEnded, type RunGateway, withLockRemedy } from './gateway.ts'

/** A runtime in this process, with its graph and the runs of its business. */
export type LocalGateway = RunGateway & { runs: BusinessRuns; graph: GraphInfo }

/** A runtime in this process, with a worker. */
export const openLocalGateway = async (
  config: Config,
  log: Log,
  scrubber: Scrubber = createScrubber(),
  options: Pick<RuntimeOptions, 'setup' | 'wrap'> = {},
): Promise<LocalGateway> => {
  const { openRuntime } = await import('../open-runtime.ts')
  const runtime = await withLockRemedy(
    openRuntime(config, { log, scrubber, ...options }),
    'if that is `mason serve`, submit the run to it with --url http://127.0.0.1:8080; else stop that process or choose another DATA_DIR',
  )
  await runtime.startWorker({ concurrency: config.concurrency })
  const api = runtime.of('default')
  return {
    offline: runtime.models.describe().capabilities.includes(rulesOnly),
    async submit(request) {
      const { run } = await api.submit(request)
      return {
        run,
        events: (signal) => api.events({ run_id: run.id }, 0, signal),
        cancel: (reason) => ignoreEnded(api.cancel(run.id, reason)),
        answer: async (requestId, answer) => void (await api.answer(run.id, requestId, answer)),
      }
    },
    formatAnswerCommand: (runId, requestId) =>
      `${resolveCommandName()} serve, then POST /v1/runs/${runId}/input {"request_id": "${requestId}", "answer": …}`,
    formatContinueCommand: (sessionId, userId) =>
      `${resolveCommandName()} run --session ${sessionId} --user ${userId} "…"`,
    runs: api,
    graph: runtime.graph,
    close: () => runtime.close(10_000),
  }
}
