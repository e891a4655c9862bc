import type { Config } from '../../src/infra/config/config.ts'

/** The task of the worker. */
export type BadModelTask = { config: Config; modelUrl: string; concurrency: number }

/** What it tells: an error is one it logged. */
export type BadModelMessage =
  | { event: 'ready' }
  | { event: 'report'; heapBytes: number; bufferBytes: number; sockets: number }
  | { event: 'error'; text: string }

/** So short that a stall costs seconds and not minutes; a busy machine still keeps them. */
export const clocks = { firstByteMs: 3000, idleMs: 3000, totalMs: 12_000 }
