import { fileURLToPath } from 'node:url'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Config } from '../../src/infra/config/config.ts'

/** `node tool-worker-process.js '<JSON of ToolWorkerTask>'`: a worker with the models of the settings and the tools of the bench. */
export type ToolWorkerTask = { config: Config }

const { config } = JSON.parse(process.argv[2] ?? '') as ToolWorkerTask
const runtime = await openRuntime(config, {
  memory: 'off',
  toolFolders: [fileURLToPath(new URL('./tools', import.meta.url))],
})
await runtime.startWorker()
process.send?.({})
// the parent process is gone
process.once('disconnect', () => process.exit(1))
