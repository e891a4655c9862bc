import { once } from 'node:events'
import { toPackagePath } from '../../infra/lib/package-path.ts'

/**
 * Runs before `mason serve` where `mason dev` starts it (`node --import`): does once in memory what a start does, so that all
 * code is loaded and compiled, and waits to be needed.
 */
const needed = once(process, 'message')
// `mason dev` is gone
process.once('disconnect', () => process.exit())
const [{ openTestRuntime }] = await Promise.all([
  import('../../testing/testing.ts'),
  import('../http/app.ts'),
])
// a folder without a mason.config
const runtime = await openTestRuntime({ folder: toPackagePath('templates') })
await runtime.close()
await needed
process.removeAllListeners('disconnect').disconnect()
