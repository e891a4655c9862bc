import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Case, Figures } from '../case.ts'
import { type Build, root } from './build.ts'
import type { MeasureTask } from './measure-process.ts'

/** A build, ready to be measured: it has a migrated database from which each measurement gets a copy. */
export type Bench = AsyncDisposable & {
  /** Runs one variant of a case in a fresh process. */
  measure(name: string, variant: string, scale: number, signal: AbortSignal): Promise<Figures>
  load(name: string): Promise<Case>
}

export const openBench = async (build: Build): Promise<Bench> => {
  const template = `mason_bench_${randomBytes(4).toString('hex')}`
  const templates = build.script('bench/support/template-process.ts')
  await answerOf(templates, { make: template })
  return {
    async measure(name, variant, scale, signal) {
      const task: MeasureTask = { name, variant, scale, template, root }
      return (await answerOf(build.script('bench/support/measure-process.ts'), task, signal)) as Figures
    },
    load: async (name) =>
      ((await import(build.script(`bench/cases/${name}.bench.ts`))) as { default: Case }).default,
    async [Symbol.asyncDispose]() {
      await answerOf(templates, { drop: template })
    },
  }
}

/** The one thing a process tells before it ends. */
const answerOf = async (path: string, task: unknown, signal?: AbortSignal): Promise<unknown> => {
  const child = fork(path, [JSON.stringify(task)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  // it ends its own processes and drops its database first
  const stop = () => void child.kill('SIGTERM')
  signal?.addEventListener('abort', stop, { once: true })
  const messages: unknown[] = []
  child.on('message', (message) => messages.push(message))
  const [code] = await once(child, 'exit')
  signal?.removeEventListener('abort', stop)
  signal?.throwIfAborted()
  if (code !== 0 || messages.length !== 1)
    throw new Error(`${path} ended with code ${code}; what is wrong stands above`)
  return messages[0]
}
