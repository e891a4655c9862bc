import { type ChildProcess, fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { setPriority } from 'node:os'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { FileJob, FileReply, ProcessOptions } from './protocol/child-protocol.ts'

/**
 * Why a process did not finish a job. `memory`, `time`: over its limit. `starved`: the machine gave it no time, or killed
 * it for want of memory; another attempt may succeed.
 */
export type ProcessFailure = { ok: false; kind: 'memory' | 'time' | 'crashed' | 'starved' }

/** A process that opens files, started with the first job and again after a job that ended it. */
export type FileProcess = AsyncDisposable & {
  run(job: FileJob, signal: AbortSignal): Promise<FileReply | ProcessFailure>
}

const fromSources = import.meta.url.endsWith('.ts')
const program = fileURLToPath(new URL(`./child/main-process.${fromSources ? 'ts' : 'js'}`, import.meta.url))
const loader = (): string[] =>
  fromSources ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : []

/** The heap's share of the memory: the process's watchdog counts buffers and WebAssembly too. */
const heapShare = 0.65
/** A job's wall-clock limit, as a multiple of its processor time: for a job that waits without computing. */
const wallClockFactor = 6
/** Runs and requests come before files: about a third of their share of a busy processor, less than the factor above. */
const niceness = 5

/** Opens the process of file jobs. It has no environment, so no secrets of ours. `forkProgram` is for tests. */
export const openFileProcess = (options: ProcessOptions, forkProgram: typeof fork = fork): FileProcess => {
  let child: ReturnType<typeof start> | null = null
  let errorOutput = ''

  const forkChild = (): ChildProcess => {
    const heapMb = Math.floor((options.maxBytes * heapShare) / 1024 / 1024)
    return forkProgram(program, [JSON.stringify(options)], {
      execArgv: [...loader(), `--max-old-space-size=${heapMb}`, '--disable-proto=delete'],
      // settings hold secrets
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
  }

  /** The process once it is ready, or why it ended before. */
  const start = async (): Promise<ChildProcess | ProcessFailure['kind']> => {
    const started = forkChild()
    if (started.pid !== undefined) setPriority(started.pid, niceness)
    errorOutput = ''
    started.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errorOutput = (errorOutput + text).slice(-4000)
    })
    return new Promise((resolve, reject) => {
      started.once('message', () => resolve(started))
      started.once('error', reject)
      started.once('close', (_code, killedBy) => {
        // also between two jobs: the next job starts another process
        child = null
        const kind = toFailureKind(errorOutput, killedBy)
        if (kind !== 'crashed') resolve(kind)
        else reject(new Error(`the file process did not start: ${errorOutput.slice(-500)}`))
      })
    })
  }

  return {
    async run(job, signal) {
      signal.throwIfAborted()
      child ??= start()
      const process = await child.catch((error: NodeJS.ErrnoException) => {
        child = null
        if (starvedCodes.includes(error.code ?? '')) return 'starved' as const
        throw error
      })
      if (typeof process === 'string') return { ok: false, kind: process }
      const end = (): void => void process.kill('SIGKILL')
      const timer = setTimeout(end, options.maxMs * wallClockFactor)
      signal.addEventListener('abort', end)
      try {
        return await new Promise<FileReply | ProcessFailure>((resolve) => {
          const onReply = (reply: unknown): void => {
            process.off('close', onClose)
            resolve(reply as FileReply)
          }
          const onClose = (_code: number | null, killedBy: NodeJS.Signals | null): void => {
            process.off('message', onReply)
            child = null
            resolve({ ok: false, kind: toFailureKind(errorOutput, killedBy) })
          }
          process.once('message', onReply)
          process.once('close', onClose)
          process.send(job, (error) => {
            if (error) end()
          })
        })
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        signal.throwIfAborted()
      }
    },
    async [Symbol.asyncDispose]() {
      const process = await child?.catch(() => null)
      child = null
      if (!process || typeof process === 'string' || process.exitCode !== null || process.signalCode !== null)
        return
      await new Promise<void>((resolve) => {
        process.once('close', () => resolve())
        process.kill('SIGKILL')
      })
    },
  }
}

/** The machine has no memory, process or file handle left. */
const starvedCodes = ['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE']

/** The watchdog writes why it ends the process. A kill without a word came from the wall-clock limit or the system. */
const toFailureKind = (errorOutput: string, killedBy: NodeJS.Signals | null): ProcessFailure['kind'] => {
  if (/over its limit of memory|heap out of memory|Allocation failed/i.test(errorOutput)) return 'memory'
  if (errorOutput.includes('over its limit of time')) return 'time'
  return killedBy === 'SIGKILL' ? 'starved' : 'crashed'
}
