import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** A process that has sent its report: a server where it listens, a peer what it measured. */
export type Started = { pid: number; report: { port?: number; ms?: number; pids?: Record<string, number> } }

export type Processes = {
  /** Starts `bench/support/<name>.ts`, compiled, with a task as JSON, and waits for its report. */
  start(name: string, task: unknown): Promise<Started>
  /** The same with a script of any place, in its folder. */
  startFile(path: string, task: unknown, cwd?: string): Promise<Started>
  /** Takes a process of another kind into its care. */
  adopt(child: ChildProcess): void
  end(): Promise<void>
}

/** Starts processes that tell over IPC when they are ready, and ends those that are left, each by its own id. */
export const createProcesses = (): Processes => {
  const children = new Set<ChildProcess>()
  /** Those that children have started. */
  const reported = new Set<number>()

  const adopt = (child: ChildProcess): Promise<number | null> => {
    children.add(child)
    return once(child, 'exit').then(([code]) => {
      children.delete(child)
      return code as number | null
    })
  }

  const startFile: Processes['startFile'] = async (path, task, cwd) => {
    const child = fork(path, [JSON.stringify(task)], {
      ...(cwd && { cwd }),
      execArgv: [],
      // what a server logs goes nowhere, as fast as it can
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const gone = adopt(child).then((code) => {
      throw new Error(`${path} ended with ${code} before its report`)
    })
    const [report] = (await Promise.race([once(child, 'message'), gone])) as [Started['report']]
    for (const pid of Object.values(report.pids ?? {})) if (pid !== child.pid) reported.add(pid)
    return { pid: child.pid ?? 0, report }
  }

  return {
    startFile,
    adopt: (child) => void adopt(child),
    start: (name, task) => startFile(fileURLToPath(new URL(`./${name}.js`, import.meta.url)), task),
    async end() {
      for (const pid of reported)
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          // it has ended by itself
        }
      reported.clear()
      await Promise.all(
        [...children].map((child) => {
          const gone = once(child, 'exit')
          child.kill('SIGKILL')
          return gone
        }),
      )
    },
  }
}

/** The numbers of `/proc/<pid>/stat`, from the state of the process on. */
const readStat = (pid: number): number[] => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
}

export const parentOf = (pid: number): number => readStat(pid)[1] ?? 0

/**
 * Milliseconds of processor time a process has taken so far, which a busy machine stretches less than the clock; with
 * `endedChildren` also that of its children that have ended.
 */
export const cpuMs = (pid: number, { endedChildren = false } = {}): number =>
  readStat(pid)
    // utime and stime, then cutime and cstime, in hundredths of a second
    .slice(11, endedChildren ? 15 : 13)
    .reduce((all, ticks) => all + ticks * 10, 0)

/** Megabytes that a line of `/proc/<pid>/status` tells; NaN where there is none, as of a process that has ended. */
export const statusMb = (status: string, name: 'VmRSS' | 'VmHWM'): number => {
  const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]
  return Math.round(Number(kilobytes) / 102.4) / 10
}

/** Megabytes a process holds in memory now. */
export const rssMb = (pid: number): number => statusMb(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmRSS')
