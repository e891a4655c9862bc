import { Worker } from 'node:worker_threads'
import { type Job, Refused, type Reply, Unreadable } from './protocol.ts'
import { watch } from './watch.ts'

/** The process that opens files: one job at a time, in its own memory, killed by its own watch when it takes too much. */

const limits = JSON.parse(process.argv[2] ?? '{}') as { maxBytes: number; maxMs: number }
const watcher = new Worker(watch, {
  eval: true,
  execArgv: [],
  workerData: { ...limits, parent: process.ppid },
})

const answer = async (job: Job): Promise<Reply> => {
  try {
    if (job.kind === 'query') return { ok: true, rows: await (await import('./query.ts')).queryTables(job) }
    return { ok: true, found: await (await import('./prepare.ts')).prepareFile(job) }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    if (error instanceof Refused) return { ok: false, kind: 'refused', format: '', message }
    const { format = 'binary' } = error as { format?: string }
    return {
      ok: false,
      kind: 'unreadable',
      format,
      message: error instanceof Unreadable ? message : broken(message),
    }
  }
}

const broken = (message: string): string =>
  `it cannot be read (${message.split('\n', 1)[0]?.slice(0, 200)}); it may be damaged or cut short: save it anew and upload it again`

process.on('disconnect', () => process.exit())
process.on('message', async (job: Job) => {
  watcher.postMessage(true)
  const reply = await answer(job)
  watcher.postMessage(false)
  process.send?.(reply)
})
process.send?.('ready')
