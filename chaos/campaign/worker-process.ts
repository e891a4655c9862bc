import { fileURLToPath } from 'node:url'
import { createLog } from '../../src/app/cli/log.ts'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Config } from '../../src/infra/config/config.ts'
import { createCrash } from './crash-points.ts'
import { digestOf, lastIdOf } from './digest.ts'
import { scriptModels } from './script-models.ts'
import { watchWrites } from './watch-writes.ts'

export type WorkerTask = {
  config: Config
  ledgerUrl: string
  crashAt: string | null
  /** What it does as the API does it, once it is at work. */
  order: Order | null
}

export type Order =
  | { do: 'cancel'; run_id: string }
  | { do: 'answer'; run_id: string; request_id: string; answer: string }

/** `acted`: an action was appended. `left`: it released a run, with the digest of the state it held up to the action `last`. */
export type WorkerLine =
  | { event: 'ready' }
  | { event: 'acted' }
  | { event: 'crashing'; at: string }
  | { event: 'left'; run_id: string; session_id: string; left: string; last: number; digest: string }

const tell = (line: WorkerLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

/** A worker that plays scripts. Argument: a `WorkerTask` as JSON. Killed at the latest by who started it. */
const work = async ({ config, ledgerUrl, crashAt, order }: WorkerTask): Promise<void> => {
  const stopped = new Promise((resolve) => process.once('SIGTERM', resolve))
  const tellOfActions = watchWrites(/INSERT INTO actions/, (side) => {
    if (side === 'after') tell({ event: 'acted' })
  })
  const crash = crashAt === null ? null : createCrash(crashAt, (at) => tell({ event: 'crashing', at }))
  const runtime = await openRuntime(config, {
    log: createLog(config.logLevel),
    models: scriptModels(ledgerUrl),
    toolFolders: [fileURLToPath(new URL('./tools', import.meta.url))],
    wrap: { database: (database) => tellOfActions(crash?.(database) ?? database) },
    onRunReleased: ({ claimed: { run_id, session_id }, state }, left) =>
      tell({ event: 'left', run_id, session_id, left, last: lastIdOf(state), digest: digestOf(state) }),
  })
  await runtime.startWorker({ concurrency: config.concurrency })
  tell({ event: 'ready' })
  const api = runtime.of('default')
  if (order?.do === 'cancel') await api.cancel(order.run_id, 'no longer wanted')
  if (order?.do === 'answer') await api.answer(order.run_id, order.request_id, order.answer)
  await stopped
  await runtime.close(12_000)
}

await work(JSON.parse(process.argv[2] ?? '') as WorkerTask)
process.exit(0)
