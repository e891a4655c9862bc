import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../child.ts'
import type { PoisonMessage, PoisonTask } from './worker.ts'

const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url))
/** Small, so that running out of memory takes a second and not a minute. */
const heapLimit = '--max-old-space-size=160'
const lookMs = 250
/** A start takes a second on a machine that is idle. */
const startMs = 300_000

/** Workers under a supervisor, as in production: one that dies is started again, one that no longer beats is killed. */
export type Pool = AsyncDisposable & {
  /** How many have died so far, by the signal that ended them. */
  deaths: Map<string, number>
  /** Resolves once all of them are there and ready. */
  whole(): Promise<void>
}

type Seat = { child: Child<PoisonMessage>; ready: boolean }

/** `silentMs`: how long a worker may be without a beat. */
export const openPool = (task: PoisonTask, size: number, silentMs: number): Pool => {
  const deaths = new Map<string, number>()
  const seats = new Set<Seat>()
  const over = new AbortController()

  const keepOne = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const child = startChild<PoisonMessage>(script, task, [heapLimit])
      const seat = { child, ready: false }
      seats.add(seat)
      const started = child.next('ready', startMs).then(
        () => {
          seat.ready = true
        },
        () => {},
      )
      const watched = watch(child, started, silentMs)
      const { code, signal } = await child.ended
      seats.delete(seat)
      await watched
      if (over.signal.aborted) return
      const how = signal ?? `code ${code}`
      deaths.set(how, (deaths.get(how) ?? 0) + 1)
    }
  }
  const kept = Array.from({ length: size }, keepOne)
  return {
    deaths,
    async whole() {
      while ([...seats].filter(({ ready }) => ready).length < size) await pause(lookMs)
    },
    async [Symbol.asyncDispose]() {
      over.abort()
      for (const { child } of seats) child.signal('SIGKILL')
      await Promise.all(kept)
    },
  }
}

/** Kills a worker whose event loop has stood still for so long. */
const watch = async (
  child: Child<PoisonMessage>,
  started: Promise<void>,
  silentMs: number,
): Promise<void> => {
  await started
  const over = new AbortController()
  void child.ended.then(() => over.abort())
  for (let seen = 0; !over.signal.aborted; ) {
    await pause(silentMs, undefined, { signal: over.signal }).catch(() => {})
    const beats = child.messages.length
    if (beats === seen) child.signal('SIGKILL')
    seen = beats
  }
}
