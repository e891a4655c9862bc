import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { startFakeModel } from '../../test/support/fake-model/fake-model.ts'
import { until } from '../../test/support/runs.ts'
import { callWith, quickWaits } from '../../test/support/vendors.ts'
import { type CallerMessage, startCallers } from './caller.ts'
import { addVendor, type Stage } from './stage.ts'

const minuteMs = 60_000
/** Into the second minute, where requests of the first that left late would meet those of the second. */
const drivenMs = 75_000
const rpm = 60
const processes = 2
const lanes = 4

/** The most of these times that lie in any minute. */
const mostInAMinute = (times: readonly number[]): number =>
  Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + minuteMs).length))

type Driven = { most: number; failures: string[] }

/**
 * One key of 60 requests a minute, driven by two new processes as fast as they can from their first moment on: 60 +- 1 in
 * any minute, as its vendor sees it, who is a third process. `isLong`: calls wait for the next minute, and go on into it;
 * else each lane ends when it would have to.
 */
export const driveLimit = async (stage: Stage, isLong: boolean, signal: AbortSignal): Promise<Driven> => {
  await using server = await startFakeModel({ script: () => ({ text: 'ok' }) })
  const { model } = await addVendor(stage, {
    name: 'metered',
    baseUrl: server.baseUrl,
    keys: ['metered'],
    limits: { rpm },
    timeouts: { total_ms: isLong ? 4 * drivenMs : minuteMs / 2 },
  })
  const callers = startCallers(stage.backend, { model, lanes, count: processes })
  const stop = (name: NodeJS.Signals): void => {
    for (const caller of callers) caller.signal(name)
  }
  const leave = () => stop('SIGKILL')
  signal.addEventListener('abort', leave)
  try {
    if (isLong) {
      await Promise.all(callers.map((caller) => caller.next('ready', minuteMs)))
      await systemClock.sleep(drivenMs, signal)
      stop('SIGTERM')
    }
    await Promise.all(callers.map(({ ended }) => ended))
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
  signal.throwIfAborted()
  const times = server.requests().map(({ atMs }) => atMs)
  const most = mostInAMinute(times)
  const failures = callers.flatMap(({ messages }) => failuresOf(messages, isLong))
  if (Math.abs(most - rpm) > 1) failures.push(`the vendor saw ${most} requests in a minute, not ${rpm} +- 1`)
  // or no check sees what the second minute does to the first
  if (isLong && times.length <= rpm + 1) failures.push(`the vendor saw ${times.length} requests in 75 s`)
  return { most, failures }
}

/** What ended the lanes of a process: nothing where they wait, else the limit, and each of them. */
const failuresOf = (messages: readonly CallerMessage[], isLong: boolean): string[] => {
  const refused = messages.flatMap((message) => (message.event === 'refused' ? [message] : []))
  const unlike = refused.filter(({ isLimited }) => isLong || !isLimited)
  const failures = unlike.map(({ text }) => `a call under a limit failed: ${text}`)
  return isLong || refused.length === lanes
    ? failures
    : [...failures, `${refused.length} of ${lanes} lanes of a process met the limit`]
}

const backWithinMs = (quickWaits.disabled?.maxMs ?? 0) + 30_000

/** A vendor that refuses its key for a while: the key is disabled, tried now and then, and serves again by itself. */
export const healVendor = async (
  stage: Stage,
): Promise<{ probes: number; backMs: number; failures: string[] }> => {
  let sick = true
  await using server = await startFakeModel({
    script: ({ headers }) =>
      sick
        ? { failure: { status: 401, body: { error: { message: `unknown key ${headers.authorization}` } } } }
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
