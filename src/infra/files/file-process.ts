import { type ChildProcess, fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Job, Reply } from './child/protocol.ts'

/**
 * What became of a job: its answer, or that the process was ended by its limits or ended by itself. `starved`: the machine
 * gave it no time, or killed it for want of memory; another try may go well.
 */
export type Ended = { ok: false; kind: 'memory' | 'time' | 'crashed' | 'starved' }

/** Bytes of memory, and milliseconds of the processor for one job. */
export type Limits = { maxBytes: number; maxMs: number }

/** A process that opens files, started with the first job and again after one that it did not outlive. */
export type FileProcess = AsyncDisposable & { ask(job: Job, signal: AbortSignal): Promise<Reply | Ended> }

const fromSources = import.meta.url.endsWith('.ts')
const program = fileURLToPath(new URL(`./child/main-process.${fromSources ? 'ts' : 'js'}`, import.meta.url))
const loader = (): string[] =>
  fromSources ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : []

/** The heap is the smaller part: buffers and WebAssembly are counted by the process's own watch. */
const heapShare = 0.65
/** By the clock a job may take so many times as long: the watch inside counts, this is for one that only waits. */
const patience = 6

export const openFileProcess = (limits: Limits, forkProgram: typeof fork = fork): FileProcess => {
  let child: Promise<ChildProcess> | null = null
  let said = ''

  const forked = (): ChildProcess => {
    const heapMb = Math.floor((limits.maxBytes * heapShare) / 1024 / 1024)
    return forkProgram(program, [JSON.stringify(limits)], {
      execArgv: [...loader(), `--max-old-space-size=${heapMb}`, '--disable-proto=delete'],
      // nothing of ours: settings hold secrets
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
  }

  const start = async (): Promise<ChildProcess> => {
    let started: ChildProcess
    try {
      started = forked()
    } catch (error) {
      // some codes are thrown, others come as an event
      throw notForked(error as NodeJS.ErrnoException)
    }
    said = ''
    started.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4000)
    })
    await new Promise<void>((resolve, reject) => {
      started.once('message', () => resolve())
      started.once('error', (error) => reject(notForked(error)))
      started.once('close', (_code, killedBy) => {
        // also between two jobs: the next one starts another
        child = null
        const kind = reasonOf(said, killedBy)
        const fault = new Error(`the process that opens files did not start: ${said.slice(-500)}`)
        reject(kind === 'crashed' ? fault : new NotStarted(kind))
      })
    })
    return started
  }

  return {
    async ask(job, signal) {
      signal.throwIfAborted()
      child ??= start()
      const process = await child.catch((error: unknown) => {
        child = null
        if (error instanceof NotStarted) return error
        throw error
      })
      if (process instanceof NotStarted) return { ok: false, kind: process.kind }
      const end = (): void => void process.kill('SIGKILL')
      const late = setTimeout(end, limits.maxMs * patience)
      signal.addEventListener('abort', end)
      try {
        return await new Promise<Reply | Ended>((resolve) => {
          const answered = (reply: unknown): void => {
            process.off('close', closed)
            resolve(reply as Reply)
          }
          const closed = (_code: number | null, killedBy: NodeJS.Signals | null): void => {
            process.off('message', answered)
            child = null
            resolve({ ok: false, kind: reasonOf(said, killedBy) })
          }
          process.once('message', answered)
          process.once('close', closed)
          process.send(job, (error) => {
            if (error) end()
          })
        })
      } finally {
        clearTimeout(late)
        signal.removeEventListener('abort', end)
        signal.throwIfAborted()
      }
    },
    async [Symbol.asyncDispose]() {
      const process = await child?.catch(() => null)
      child = null
      if (!process || process.exitCode !== null || process.signalCode !== null) return
      await new Promise<void>((resolve) => {
        process.once('close', () => resolve())
        process.kill('SIGKILL')
      })
    },
  }
}

/** It was ended before it was asked anything. */
class NotStarted extends Error {
  readonly kind: Ended['kind']

  constructor(kind: Ended['kind']) {
    super(`the process that opens files was ended as it started: ${kind}`)
    this.kind = kind
  }
}

/** The machine has no memory, process or handle left for it; any other fault is ours. */
const notForked = (error: NodeJS.ErrnoException): Error =>
  ['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE'].includes(error.code ?? '') ? new NotStarted('starved') : error

/** Its own watch says why it ends the process; what is killed without a word was too slow by the clock, or in the system's way. */
const reasonOf = (said: string, killedBy: NodeJS.Signals | null): Ended['kind'] => {
  if (said.includes('over its limit of memory') || /heap out of memory|Allocation failed/i.test(said))
    return 'memory'
  if (said.includes('over its limit of time')) return 'time'
  return killedBy === 'SIGKILL' ? 'starved' : 'crashed'
}
