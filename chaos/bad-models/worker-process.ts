import { openRuntime } from '../../src/app/open-runtime.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { Log } from '../../src/state/ports/log.ts'
import { openModels } from '../../test/support/one-server.ts'
import { type BadModelMessage, type BadModelTask, clocks } from './worker.ts'

/** A worker that asks a bad model through the real client. */
const tell = (message: BadModelMessage): void => void process.send?.(message)
const silent = (): void => {}
const log: Log = {
  debug: silent,
  info: silent,
  warn: silent,
  error: (data, message) =>
    tell({ event: 'error', text: `${message} ${JSON.stringify(data).slice(0, 500)}` }),
}

const report = (): void => {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
  tell({ event: 'report', heapBytes: heapUsed, bufferBytes: arrayBuffers, sockets })
}

const main = async ({ config, modelUrl, concurrency }: BadModelTask): Promise<void> => {
  const stopped = new Promise((resolve) => process.once('SIGTERM', resolve))
  // the parent process is gone
  process.once('disconnect', () => process.exit(1))
  const models = openModels({
    baseUrl: modelUrl,
    apiKey: 'test',
    model: 'fake',
    clocks,
    retry: { attempts: 3, baseMs: 10, maxMs: 50 },
    clock: systemClock,
  })
  const runtime = await openRuntime(config, { models, log })
  await runtime.startWorker({ concurrency })
  process.on('message', report)
  tell({ event: 'ready' })
  await stopped
  await runtime.close(12_000)
}

await main(JSON.parse(process.argv[2] ?? '') as BadModelTask)
process.exit(0)
