import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Config } from '../../src/infra/config/config.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'

/** A worker that lives until its parent ends it. Its argument: the settings as JSON. */
const work = async (config: Config): Promise<void> => {
  process.once('disconnect', () => process.exit(1))
  const runtime = await openRuntime(config, { models: noOpModels(), log: silentLog })
  await runtime.startWorker({ concurrency: 1 })
  process.send?.({ event: 'ready' })
}

await work(JSON.parse(process.argv[2] ?? '') as Config)
