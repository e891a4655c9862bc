import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Config } from '../../src/infra/config/config.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'

/** `node worker-process.js '<JSON of WorkerTask>'`: a worker of its own with the no-op model. */
export type WorkerTask = { config: Config; rounds?: number }

const { config, rounds = 1 } = JSON.parse(process.argv[2] ?? '') as WorkerTask
const runtime = await openRuntime(config, { models: noOpModels({ rounds }) })
await runtime.startWorker()
process.send?.({})
// the parent process is gone
process.once('disconnect', () => process.exit(1))
