import { startFakeModel } from '../../support/fake-model.ts'
import { until } from '../../support/spine.ts'
import { callWith, quickWaits } from '../../support/vendors.ts'
import { addVendor, type Stage } from './stage.ts'

const minuteMs = 60_000
const drivenMs = 70_000
const rpm = 60
const lanes = 4

/** The most of these times that lie in any minute. */
const mostInAMinute = (times: readonly number[]): number =>
  Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + minuteMs).length))

/** One key of 60 requests a minute, driven by both runtimes as fast as they can: 60 +- 1, as its vendor saw it. */
export const driveLimit = async (
  stage: Stage,
  signal: AbortSignal,
): Promise<{ most: number; failures: string[] }> => {
  await using server = await startFakeModel({ script: () => ({ text: 'ok' }) })
  const timeouts = { total_ms: 2 * drivenMs }
  const { model } = await addVendor(stage, {
    name: 'metered',
    baseUrl: server.baseUrl,
    keys: ['metered'],
    limits: { rpm },
    timeouts,
  })
  const over = AbortSignal.any([signal, AbortSignal.timeout(drivenMs)])
  const faults: unknown[] = []
  const lane = async (runtime: Stage['runtimes'][0]): Promise<void> => {
    while (!over.aborted)
      await callWith(runtime, { role: 'metered', model }, { signal: over }).catch((error: unknown) => {
        if (!over.aborted) faults.push(error)
      })
  }
  const all = stage.runtimes.flatMap((runtime) => Array.from({ length: lanes }, () => lane(runtime)))
  await Promise.all(all)
  signal.throwIfAborted()
  const most = mostInAMinute(server.requests().map(({ atMs }) => atMs))
  const failures = faults.map((fault) => `a call that only had to wait failed: ${String(fault)}`)
  if (Math.abs(most - rpm) > 1) failures.push(`the vendor saw ${most} requests in a minute, not ${rpm} +- 1`)
  return { most, failures }
}

const backWithinMs = (quickWaits.disabled?.maxMs ?? 0) + 2000

/** A vendor that refuses its key for a while: the key is disabled, tried now and then, and serves again by itself. */
export const healVendor = async (
  stage: Stage,
): Promise<{ probes: number; backMs: number; failures: string[] }> => {
  let sick = true
  await using server = await startFakeModel({
    script: ({ headers }) =>
      sick
        ? { fault: { status: 401, body: { error: { message: `unknown key ${headers.authorization}` } } } }
        : { text: 'welcome' },
  })
  const { id, model, keys } = await addVendor(stage, {
    name: 'proud',
    baseUrl: server.baseUrl,
    keys: ['proud'],
  })
  const failures: string[] = []
  const [here, there] = stage.runtimes
  const isAnswered = async (runtime: Stage['runtimes'][0]): Promise<boolean> => {
    const end = await callWith(runtime, { role: 'proud', model }).catch((error: unknown) => error)
    stage.show(end)
    return !(end instanceof Error)
  }
  const stateOfKey = async (): Promise<string | undefined> =>
    (await here.admin.registry.keys.get({ vendor_id: id }, keys[0]?.id ?? ''))?.health.state

  if (await isAnswered(here)) failures.push('a refused key gave an answer')
  await until('the key is disabled', async () => (await stateOfKey()) === 'disabled')
  // a half-open call meets the refusal again, and another one must follow it
  await until('it was tried again', async () => {
    if (await isAnswered(there)) failures.push('a refused key gave an answer')
    return server.requests().length >= 2
  })
  const probes = server.requests().length - 1
  sick = false
  const healedAtMs = performance.now()
  await until('the key serves again', () => isAnswered(there))
  const backMs = performance.now() - healedAtMs
  if (backMs > backWithinMs) failures.push(`the key came back after ${Math.round(backMs)} ms only`)
  await until('it is shown as healthy', async () => (await stateOfKey()) === 'healthy')
  if (!(await isAnswered(here))) failures.push('the key serves one process only')
  return { probes, backMs: Math.round(backMs), failures }
}
