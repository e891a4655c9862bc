import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export type Member = {
  name: string
  pid: number
  /** Resolves with the first line that fits, waiting for it if need be; null when the process ended without it. */
  waitForLine(fits: (line: string) => boolean): Promise<string | null>
  /** Resolves once so many lines hold this text, it is gone, or the time is over. */
  counted(text: string, count: number, withinMs: number): Promise<void>
  kill(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** The processes of a campaign, each with its log in a file; those that are left are killed in the end. */
export const openProcesses = (logs: string) => {
  mkdirSync(logs)
  const children = new Set<ChildProcess>()
  let started = 0
  return {
    start(
      kind: string,
      args: readonly string[],
      options: { env?: Record<string, string>; onLine?: (line: string) => void } = {},
    ): Member {
      const name = `${kind}-${++started}`
      const log = openSync(join(logs, name), 'a')
      const child = spawn(process.execPath, args, {
        stdio: ['ignore', 'pipe', log],
        env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...options.env },
      })
      closeSync(log)
      children.add(child)
      const lines: string[] = []
      const news = new EventEmitter().setMaxListeners(0)
      let isGone = false
      const exited = once(child, 'close').then(([code, signal]) => {
        children.delete(child)
        isGone = true
        news.emit('line')
        return { code, signal }
      })
      if (!child.stdout) throw new Error('a process without its pipe')
      createInterface({ input: child.stdout }).on('line', (line) => {
        options.onLine?.(line)
        lines.push(line)
        news.emit('line')
      })
      return {
        name,
        pid: child.pid ?? 0,
        kill: (signal) => void child.kill(signal),
        exited,
        async counted(text, count, withinMs) {
          const late = AbortSignal.timeout(withinMs)
          const isThere = (): boolean => lines.filter((line) => line.includes(text)).length >= count
          while (!isThere() && !isGone && !late.aborted)
            await once(news, 'line', { signal: late }).catch(() => {})
        },
        async waitForLine(fits) {
          for (;;) {
            const line = lines.find(fits)
            if (line !== undefined || isGone) return line ?? null
            await once(news, 'line')
          }
        },
      }
    },
    /** What the logs say of something, the latest first. */
    mentions(what: string, limit = 6): string[] {
      const lines = readdirSync(logs).flatMap((file) =>
        readFileSync(join(logs, file), 'utf8')
          .split('\n')
          .filter((line) => line.includes(what))
          .map((line) => `${file}: ${line.slice(0, 400)}`),
      )
      return lines.slice(-limit).reverse()
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(
        [...children].map((child) => {
          const gone = once(child, 'close')
          child.kill('SIGKILL')
          return gone
        }),
      )
    },
  }
}

export type Processes = ReturnType<typeof openProcesses>
