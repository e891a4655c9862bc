import type { Runtime } from '../../src/app/api.ts'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Case, Variant } from '../case.ts'
import type { VendorKind } from '../support/flood-vendor-process.ts'
import type { Place } from '../support/place.ts'
import { percentile } from '../support/statistics.ts'

const patienceMs = 60_000
const vendorTakesMs = 5000

/** One worker with default settings, and a vendor that does what prompts say. */
const openWorker = async ({ processes, config }: Place): Promise<Runtime> => {
  const { report } = await processes.start('flood-vendor-process', {})
  const baseUrl = `http://127.0.0.1:${report.port}/v1`
  const openai = { apiKey: 'sk-bench', baseUrl, model: 'fake', embeddingModel: 'none' }
  const runtime = await openRuntime({ ...config, openai, learning: false })
  await runtime.startWorker()
  return runtime
}

const submit = async (runtime: Runtime, business: string, prompt: string): Promise<string> =>
  (await runtime.of(business).submit({ prompt, user_id: 'u1' })).run.id

const processorMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/**
 * Runs of a business, one after the other: the milliseconds of each, and what this process used of a processor meanwhile, which a busy
 * machine stretches less; a run that was not done counts as the whole patience.
 */
const measureRuns = async (
  runtime: Runtime,
  many: number,
): Promise<{ ms: number[]; processorMs: number[] }> => {
  const ms: number[] = []
  const processor: number[] = []
  for (let n = 0; n < many; n++) {
    const since = performance.now()
    const usedBefore = processorMs()
    const id = await submit(runtime, 'other', 'hello')
    const view = await runtime
      .of('other')
      .wait(id, AbortSignal.timeout(patienceMs))
      .catch(() => null)
    const isDone = view?.status === 'completed'
    ms.push(isDone ? performance.now() - since : patienceMs)
    processor.push(isDone ? processorMs() - usedBefore : patienceMs)
  }
  return { ms, processorMs: processor }
}

/** The runs of one business alone, and beside a flood of another's. */
const beside =
  (kind: VendorKind, many: number): Variant =>
  async (place) => {
    const runtime = await openWorker(place)
    await measureRuns(runtime, place.count(20))
    const alone = await measureRuns(runtime, place.count(60))
    for (let n = 0; n < place.count(many); n++) await submit(runtime, 'flood', `vendor:${kind};`)
    const flooded = await measureRuns(runtime, place.count(60))
    await runtime.close()
    const p95 = percentile(flooded.ms, 0.95)
    const p95Alone = percentile(alone.ms, 0.95)
    return {
      'ms p95 alone': p95Alone,
      'ms p95': p95,
      'times its p95 alone': p95 / p95Alone,
      'times its processor p95 alone':
        percentile(flooded.processorMs, 0.95) / percentile(alone.processorMs, 0.95),
      'not done': flooded.ms.filter((ms) => ms === patienceMs).length,
    }
  }

/** From the first submission to the end of all, and what this process, which has the worker and the API, used of a processor. */
const atOnce =
  (many: number): Variant =>
  async (place) => {
    const runtime = await openWorker(place)
    await measureRuns(runtime, place.count(20))
    const [since, usedBefore] = [performance.now(), processorMs()]
    const submitted = Array.from({ length: place.count(many) }, () =>
      submit(runtime, 'flood', 'vendor:slow;'),
    )
    for (const id of await Promise.all(submitted))
      await runtime.of('flood').wait(id, AbortSignal.timeout(patienceMs))
    const seconds = (performance.now() - since) / 1000
    await runtime.close()
    const used = (processorMs() - usedBefore) / 1000
    return { seconds, 'times a call': (seconds * 1000) / vendorTakesMs, 'processor s': used }
  }

const floodCase: Case = {
  about:
    'runs of one business, one after the other, beside runs of another whose vendor is slow or fails, on one worker with default settings; and 200 runs at once with model calls of 5 s',
  ours: {
    '200 at once, calls of 5 s': atOnce(200),
    'beside 300 of 5 s': beside('slow', 300),
    'beside 40 silent': beside('silent', 40),
    'beside 12 dripping': beside('dripping', 12),
    ...Object.fromEntries(
      (['500', 'error in a 200', '429'] as const).flatMap((kind) =>
        [10, 200].map((many) => [`beside ${many} of ${kind}`, beside(kind, many)]),
      ),
    ),
  },
}

export default floodCase
