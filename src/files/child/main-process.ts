import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import {
  type FileJob,
  type FileReply,
  type ProcessOptions,
  RefusedStatementError,
  UnreadableFileError,
} from '../protocol/child-protocol.ts'
import type { FileReaders } from './reader-definition.ts'

/** The main program of the file process: one job at a time, ended by its own watchdog when it exceeds its limits. */

/**
 * A thread that ends the process, however busy, when it takes more memory or processor time than it may, or outlives its
 * parent. Processor time, so that a busy machine fails no valid file; plain JavaScript, since an eval thread needs no loader.
 */
const watchdogScript = `
const { parentPort, workerData } = require('node:worker_threads')
const { writeSync } = require('node:fs')
let since = null
const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000 }
parentPort.on('message', (works) => { since = works ? used() : null })
const reason = () => {
  if (process.memoryUsage.rss() > workerData.maxBytes) return 'memory'
  if (since !== null && used() - since > workerData.maxMs) return 'time'
  return process.ppid === workerData.parent ? null : 'alone'
}
setInterval(() => {
  const why = reason()
  if (why === null) return
  try { writeSync(2, 'mason: over its limit of ' + why + '\\n') } catch {}
  process.kill(process.pid, 'SIGKILL')
}, 40)
`

const { readers, ...limits } = JSON.parse(process.argv[2] ?? '{}') as ProcessOptions
const loadReaders = (): Promise<FileReaders> =>
  Promise.all(readers.map(async (file) => (await import(pathToFileURL(file).href)).default))
const watchdog = new Worker(watchdogScript, {
  eval: true,
  execArgv: [],
  workerData: { ...limits, parent: process.ppid },
})

const runJob = async (job: FileJob): Promise<FileReply> => {
  try {
    if (job.kind === 'reader') {
      const all = await loadReaders()
      const run = all.flatMap(({ jobs }) => jobs?.[job.name] ?? [])[0]
      if (!run) throw new Error(`no reader does the job "${job.name}"`)
      return { ok: true, output: await run(job.input as never, all) }
    }
    if (job.kind === 'lines') {
      const { readLinePage } = await import('./line-page.ts')
      return { ok: true, page: readLinePage(await readFile(job.path), job.query) }
    }
    return {
      ok: true,
      contents: await (await import('./prepare-file.ts')).prepareFile(job, await loadReaders()),
    }
  } catch (error) {
    const { message, stack = message, format = 'binary' } = error as Error & { format?: string }
    if (error instanceof RefusedStatementError) return { ok: false, kind: 'refused', format: '', message }
    if (error instanceof UnreadableFileError) return { ok: false, kind: 'unreadable', format, message }
    return { ok: false, kind: 'failed', format, message: stack.slice(0, 2000) }
  }
}

process.on('disconnect', () => process.exit())
process.on('message', async (job: FileJob) => {
  watchdog.postMessage(true)
  const reply = await runJob(job)
  watchdog.postMessage(false)
  process.send?.(reply)
})
process.send?.('ready')
