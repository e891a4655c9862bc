import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCodes } from './errors.ts'
import { waitForStopSignal } from './interrupts.ts'

/** The options of `mason dev`. */
export type DevFlags = { port?: string; host?: string }

/** How long a change is waited for to be complete: an editor writes several files, or one in steps. */
const settleMs = 100
/** When the next server is loaded: not while this one starts. */
const standbyDelayMs = 3_000

/**
 * `mason dev`: `mason serve` in a process that starts again at each change below the current folder. A stop hands runs back,
 * so they go on in the next process, which is loaded already. Where a start fails, the next change is waited for. Returns the
 * exit code.
 */
export const runDev = async (flags: DevFlags, script = process.argv[1] ?? ''): Promise<number> => {
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const note = (text: string): void => void process.stderr.write(`mason dev: ${text}\n`)
  const stopping = new AbortController()
  void waitForStopSignal().then((signal) => stopping.abort(signal))
  const start = (preload: string[] = []) => {
    const child = spawn(process.execPath, [...process.execArgv, ...preload, script, 'serve', ...args], {
      stdio: ['inherit', 'inherit', 'inherit', ...(preload.length > 0 ? (['ipc'] as const) : [])],
    })
    return { child, exited: once(child, 'exit') }
  }
  const standby = new URL(import.meta.url.replace(/dev(\.\w+)$/, 'standby-process$1')).href
  let next: ReturnType<typeof start> | undefined
  while (!stopping.signal.aborted) {
    const { child, exited } = next ?? start()
    next = undefined
    child.send?.('start', () => {})
    const loading = setTimeout(() => {
      next = start(['--import', standby])
    }, standbyDelayMs)
    const change = waitForChange(process.cwd(), stopping.signal)
    const exitedFirst = await Promise.race([exited.then(() => true), change.then(() => false)])
    if (exitedFirst && !stopping.signal.aborted) note('the server ended; it starts again at the next change')
    const path = await change
    if (path !== null) note(`${path} changed`)
    // Ctrl-C reaches all processes of the terminal, and a second signal would end the child at once
    if (stopping.signal.reason !== 'SIGINT') child.kill('SIGTERM')
    clearTimeout(loading)
    await exited
  }
  next?.child.kill()
  await next?.exited
  return exitCodes.done
}

const isSource = (path: string): boolean =>
  (/\.m?[jt]s$|\.json$/.test(path) || path === '.env') && !path.includes('node_modules')

/** Resolves with the first file that changes; null: the signal came first. */
const waitForChange = async (root: string, signal: AbortSignal): Promise<string | null> => {
  const watchers: FSWatcher[] = []
  const changed = new Promise<string>((resolve) => {
    const open = (folder: string, recursive: boolean): void => {
      const watcher = watch(join(root, folder), { recursive }, (_event, name) => {
        const path = join(folder, name ?? '')
        if (isSource(path)) resolve(path)
      })
      // a folder that goes away while it is watched
      watchers.push(watcher.on('error', () => {}))
    }
    open('', false)
    for (const entry of readdirSync(root, { withFileTypes: true }))
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        open(entry.name, true)
  })
  const stopped = once(signal, 'abort').then(() => null)
  const path = await Promise.race([changed, signal.aborted ? null : stopped])
  if (path !== null) await sleep(settleMs)
  for (const watcher of watchers) watcher.close()
  return path
}
