import { openRuntime } from '../../src/app/open-runtime.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { callWith, quickWaits } from '../../test/support/vendors.ts'
import type { CallerMessage, CallerTask } from './caller.ts'

/** Asks one model in a few lanes as fast as it is let, from its first moment on. */
const tell = (message: CallerMessage): void => void process.send?.(message)
const silent = (): void => {}
const log = { debug: silent, info: silent, warn: silent, error: silent }

const main = async ({ config, role, model, lanes }: CallerTask): Promise<void> => {
  const over = new AbortController()
  process.once('SIGTERM', () => over.abort())
  // the parent process is gone
  process.once('disconnect', () => process.exit(1))
  const runtime = await openRuntime(config, { log, modelRetryDelays: quickWaits })
  const lane = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const end = await callWith(runtime, { role, model }, { signal: over.signal }).catch(
        (error: unknown) => error,
      )
      if (over.signal.aborted || !(end instanceof Error)) continue
      const { limited = false } = ((isMasonError(end) && end.detail) || {}) as { limited?: boolean }
      tell({ event: 'refused', text: end.message, isLimited: limited })
      return
    }
  }
  tell({ event: 'ready' })
  await Promise.all(Array.from({ length: lanes }, lane))
  await runtime.close(5_000)
}

await main(JSON.parse(process.argv[2] ?? '') as CallerTask)
process.exit(0)
