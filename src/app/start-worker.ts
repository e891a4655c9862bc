import type { Config } from '../infra/config/config.ts'
import type { Runtime } from './api.ts'
import { openRuntime } from './open-runtime.ts'
import type { RuntimeOptions } from './runtime-options.ts'

/**
 * One worker in this process, as `mason worker`: it executes runs until it is closed, and then hands back the unfinished ones.
 *
 * @example
 * ```ts
 * import { readConfig, readEnvironment, startWorker } from 'mason-runtime'
 *
 * const worker = await startWorker(readConfig(readEnvironment(), { role: 'worker' }))
 * process.once('SIGTERM', () => worker.close())
 * ```
 */
export const startWorker = async (
  config: Config,
  options: RuntimeOptions = {},
): Promise<Pick<Runtime, 'close'>> => {
  const runtime = await openRuntime(config, options)
  try {
    await runtime.startWorker()
  } catch (error) {
    await runtime.close()
    throw error
  }
  return runtime
}
