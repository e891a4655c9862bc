import { setTimeout as pause } from 'node:timers/promises'
import type { World } from './world.ts'

/** Keeps an API process up, and kills it now and then: about once in half a minute, if it may. */
export const keepApiUp = (world: World, signal: AbortSignal, livesMs = 30_000) => {
  let kills = 0
  let isOver = false
  const supervise = async (): Promise<void> => {
    while (!isOver && !signal.aborted) {
      const api = world.startApi()
      const lives = Promise.race([api.exited, pause(livesMs, null, { signal, ref: false }).catch(() => null)])
      if ((await lives) === null && !isOver && !signal.aborted) kills++
      api.kill('SIGKILL')
      await api.exited
    }
  }
  void supervise()
  return {
    kills: () => kills,
    stop() {
      isOver = true
    },
  }
}
