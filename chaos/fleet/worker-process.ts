import { fileURLToPath } from 'node:url'
import { runCommand } from '../../src/app/cli/command-runner.ts'
import { waitForStopSignal } from '../../src/app/cli/interrupts.ts'
import { createLog } from '../../src/app/cli/log.ts'
import { openRuntime } from '../../src/app/open-runtime.ts'
import { readConfig } from '../../src/app/read-config.ts'
import { scriptedModels } from './scripted-models.ts'

/**
 * `mason worker` with scripted models and the gate tools. FLEET_PROVIDER_URL is the world outside. FLEET_LEAK_BYTES makes
 * it forget to let go of so much with every run: a soak that does not see that is worth nothing.
 */
const stopMs = 12_000

await runCommand(async (env) => {
  const stopped = waitForStopSignal()
  const { FLEET_PROVIDER_URL: providerUrl = '', FLEET_LEAK_BYTES: leakBytes = '0' } = process.env
  const leaked = new Map<string, string[]>()
  const config = readConfig(env(), { role: 'worker' })
  const runtime = await openRuntime(config, {
    log: createLog(config.logLevel),
    models: scriptedModels(providerUrl),
    toolFolders: [fileURLToPath(new URL('../../test/support/gate-tools', import.meta.url))],
    onRunReleased({ claimed: { run_id } }) {
      if (Number(leakBytes) > 0) leaked.set(run_id, new Array(Math.ceil(Number(leakBytes) / 8)).fill(run_id))
    },
  })
  try {
    await runtime.startWorker({ concurrency: config.concurrency })
    process.stdout.write('the worker is ready\n')
    await stopped
  } finally {
    await runtime.close(stopMs)
  }
  return 0
})
