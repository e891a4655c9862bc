import { fileURLToPath } from 'node:url'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { watchEventLoop } from '../../src/infra/lib/watchdog.ts'
import type { Models } from '../../src/state/ports/models.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'
import { deadlyBusiness, type PoisonMessage, type PoisonTask, wayOf } from './worker.ts'

/** A worker with no-op models, whose planner calls the deadly tool where the prompt says so. */
const tell = (message: PoisonMessage): void => void process.send?.(message)
const beatMs = 250

const noOp = noOpModels()
const models: Models = {
  ...noOp,
  async call(request, signal) {
    const reply = await noOp.call(request, signal)
    const way = request.role === 'planner' && wayOf(JSON.stringify(request.messages))
    if (!way) return reply
    return { ...reply, tool_calls: [{ id: 'call_1', name: 'deadly', arguments: JSON.stringify({ way }) }] }
  },
}

/** Dies as it makes the deadly business known, which is what admitting a job of it begins with. */
const deadly = (database: Database): Database => ({
  ...database,
  query(text, values) {
    if (/INSERT INTO businesses/.test(text) && Object.values(values ?? []).includes(deadlyBusiness))
      process.kill(process.pid, 'SIGKILL')
    return database.query(text, values)
  },
})

const main = async ({ config, concurrency }: PoisonTask): Promise<void> => {
  const stopped = new Promise((resolve) => process.once('SIGTERM', resolve))
  // the parent process is gone
  process.once('disconnect', () => process.exit(1))
  const runtime = await openRuntime(config, {
    models,
    toolFolders: [fileURLToPath(new URL('./tools', import.meta.url))],
    wrap: { database: deadly },
  })
  // as `mason worker` does
  watchEventLoop(config.leaseMs)
  await runtime.startWorker({ concurrency })
  tell({ event: 'ready' })
  setInterval(() => tell({ event: 'beat' }), beatMs).unref()
  await stopped
  await runtime.close(12_000)
}

await main(JSON.parse(process.argv[2] ?? '') as PoisonTask)
process.exit(0)
