import { fileURLToPath } from 'node:url'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Config } from '../../src/infra/config/config.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { DialectName } from '../../src/state/ports/models.ts'
import type { SqlValues } from '../../src/state/ports/sql.ts'
import type { RunRequest } from '../../src/state/run-request.ts'
import { openModels } from './one-server.ts'

/** `node --import tsx test/support/worker-process.ts '<JSON of WorkerTask>'`: a worker process that reports by lines of JSON. */
export type WorkerTask = {
  config: Config
  modelUrl: string
  concurrency?: number
  /** Its model writes the language of the dialogue. */
  dialect?: DialectName
  /** It is killed by SIGKILL right after so many of its actions were committed. */
  diesAfter?: number
  /** The same right before it writes down the outcome of so many runs of a list. */
  diesInBulkAt?: number
  /** Embedded, where no other process can: submits this, or waits for this run, and reports its end. */
  submit?: RunRequest
  waitFor?: string
}

export type WorkerLine =
  | { event: 'ready' }
  | { event: 'submitted'; run_id: string }
  | { event: 'left'; run_id: string; left: string }
  | { event: 'done'; run: unknown; state: unknown }

const tell = (line: WorkerLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

/** A database whose process dies where the task says so. */
const withDeath = (
  opened: Database,
  { diesAfter: actions = Number.POSITIVE_INFINITY, diesInBulkAt = Number.POSITIVE_INFINITY }: WorkerTask,
): Database => {
  let left = actions
  let bulkLeft = diesInBulkAt
  return {
    ...opened,
    async query<Row>(text: string, values?: SqlValues) {
      if (text.includes('UPDATE bulk_runs') && --bulkLeft <= 0) process.kill(process.pid, 'SIGKILL')
      const done = await opened.query<Row>(text, values)
      // runs share a statement; one without rows to return writes one
      if (text.includes('INSERT INTO actions')) left -= Math.max(1, done.rows.length)
      if (left <= 0) process.kill(process.pid, 'SIGKILL')
      return done
    },
  }
}

const main = async (task: WorkerTask): Promise<void> => {
  const stopped = new Promise((resolve) => process.once('SIGTERM', resolve))
  const patient = 120_000
  const models = openModels({
    baseUrl: task.modelUrl,
    apiKey: 'test',
    model: 'fake',
    ...(task.dialect && { dialect: task.dialect }),
    clocks: { firstByteMs: patient, idleMs: patient, totalMs: patient },
    retry: { attempts: 1, baseMs: 1, maxMs: 1 },
    clock: systemClock,
  })
  const runtime = await openRuntime(task.config, {
    models,
    toolFolders: ['gate-tools', 'dialogue-tools'].map((name) =>
      fileURLToPath(new URL(`./${name}`, import.meta.url)),
    ),
    wrap: { database: (opened) => withDeath(opened, task) },
    onRunReleased: (run, left) => tell({ event: 'left', run_id: run.claimed.run_id, left }),
  })
  await runtime.startWorker({ concurrency: task.concurrency ?? 4 })
  tell({ event: 'ready' })
  const api = runtime.of('default')
  if (task.submit) tell({ event: 'submitted', run_id: (await api.submit(task.submit)).run.id })
  if (task.waitFor)
    tell({
      event: 'done',
      run: await api.wait(task.waitFor, AbortSignal.timeout(patient)),
      state: await api.state(task.waitFor, false),
    })
  await stopped
  await runtime.close(12_000)
}

await main(JSON.parse(process.argv[2] ?? '') as WorkerTask)
process.exit(0)
