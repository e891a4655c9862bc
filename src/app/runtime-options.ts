import type { LearningTimes } from '../engine/sessions/user-memory.ts'
import type { WorkerOptions } from '../engine/worker/worker.ts'
import type { Database } from '../infra/database/database.ts'
import type { Hints } from '../infra/queue/hints.ts'
import type { Queues } from '../infra/queue/queues.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { TracingOptions } from '../infra/telemetry/tracing.ts'
import type { ModelHealthOptions } from '../models/health/model-health.ts'
import type { RetryPolicy } from '../models/transport/retry-policy.ts'
import type { OpenServices } from '../project/own-services.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { Models } from '../state/ports/models.ts'

/** Delays after errors of vendors; tests use shorter ones. @internal */
export type ModelRetryDelays = Pick<ModelHealthOptions, 'cooling' | 'disabled'> & {
  retry?: RetryPolicy
}

/**
 * What an embedding program or a test sets beside the settings.
 *
 * @example
 * ```ts
 * import type { RuntimeOptions } from 'mason-runtime'
 *
 * const options: RuntimeOptions = { toolFolders: ['/srv/shop/tools'] }
 * ```
 */
export type RuntimeOptions = {
  log?: Log
  /** Redacts secrets; every secret that is opened is added to it. */
  scrubber?: Scrubber
  /** Opens the services that own tools and nodes use; `loadProject` has it from mason.config.ts. */
  setup?: OpenServices
  /** For tests: another clock, a fake model instead of the registry's, tools that this process can import as they are. */
  clock?: Clock
  models?: Models
  /** @internal */
  modelRetryDelays?: ModelRetryDelays
  /** @internal */
  traceDelays?: Pick<TracingOptions, 'everyMs' | 'timeoutMs'>
  toolFolders?: readonly string[]
  /** @internal */
  loadDataDir?: Uint8Array
  /** Migrates a database server first, as `--migrate` does; without it, an older or newer one is refused. */
  migrate?: boolean
  /** How runs are learned from in the background; off in tests of something else. */
  memory?: 'off' | LearningTimes
  /** @internal */
  onRunReleased?: WorkerOptions['onRunReleased']
  /** For tests and the demo: wraps a driver or the models, to watch them or to make them fail. @internal */
  wrap?: {
    database?(database: Database): Database
    queues?(queues: Queues): Queues
    hints?(hints: Hints): Hints
    models?(models: Models): Models
  }
}
