import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openDeadline } from '../../src/state/deadline.ts'
import { type FakeModel, startFakeModel } from '../../test/support/fake-model/fake-model.ts'
import { openOwnServers, serversMissing } from '../../test/support/processes.ts'
import { fakeModels, openTestRuntime } from '../../test/support/test-runtime.ts'
import { startChild } from '../child.ts'
import { quantile } from '../fleet/quantile.ts'
import type { Findings, SuiteOptions } from '../suite.ts'
import { createResponder, promptOf } from './responder.ts'
import { checkRun, isUnlucky, longestGap, sumReportedTokens } from './verdict.ts'
import type { BadModelMessage, BadModelTask } from './worker.ts'

const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url))
const inFlight = 16
/** Model calls without failures. */
const rinse = 100
/** More than a run takes that waits for no model. */
const timeoutMs = 30_000
/** From a request to the next one of its run: the wait for a model or the clock for a call, and what a busy machine may add. */
const mostMs = timeoutMs + 60_000
/** Replies that came later than the clocks of the worker allow: what they reported counts for nothing. Of all tokens, or so many replies. */
const mayComeLate = { share: 0.01, replies: 3 }
/** Runs that failed because the machine was too busy for the clocks, of all. */
const mayBeUnlucky = 0.1
/** Heap that a worker may gain from the middle of the campaign to its end: its caches fill up, a leak goes on. */
const mayGrowBytes = 12 * 2 ** 20

type Report = Extract<BadModelMessage, { event: 'report' }>

/** Runs against a bad model until it was asked `calls` times; all that has to hold is checked on every run. */
export const meetBadModels = async (
  calls: number,
  { seed, scale, say, signal }: SuiteOptions,
): Promise<Findings> => {
  if (serversMissing !== null) throw new Error(serversMissing)
  const { responder, requests, calm } = createResponder(seed)
  await using backend = disposable(await openOwnServers(), (one) => one.drop())
  await using model = await startFakeModel({ script: responder })
  await using runtime = disposable(
    await openTestRuntime(backend.value, { models: fakeModels(model.baseUrl), worker: false }),
    (one) => one.close(),
  )
  const task: BadModelTask = {
    // a prompt that recalls another run's would be taken for one of that run
    config: { ...backend.value.config, recall: false },
    modelUrl: model.baseUrl,
    concurrency: inFlight,
  }
  await using worker = disposable(startChild<BadModelMessage>(script, task, ['--expose-gc']), async (one) => {
    one.signal('SIGKILL')
    await one.ended
  })
  await worker.value.next('ready')
  const crashed = new AbortController()
  void worker.value.ended.then((end) =>
    crashed.abort(new Error(`the worker is gone: ${JSON.stringify(end)}`)),
  )

  const api = runtime.value.of('default')
  const failures: string[] = []
  const codes = new Map<string, number>()
  const gaps: number[] = []
  let runs = 0
  let reported = 0
  let counted = 0
  let maxReported = 0
  let unlucky = 0
  const one = async (run: number): Promise<void> => {
    const { run: admitted } = await api.submit({
      prompt: promptOf(run),
      user_id: 'u1',
      limits: { timeout_ms: timeoutMs },
      ...(run % 3 === 0 && { output: { style: 'short' } }),
    })
    using deadline = openDeadline(120_000, AbortSignal.any([signal, crashed.signal]))
    const view = await api.wait(admitted.id, deadline.signal)
    const endedAtMs = performance.now()
    const state = await runtime.value.stateOf(admitted.id)
    const ofRun = requests.get(run) ?? []
    const ended = { view, state, asked: ofRun, endedAtMs }
    const outcome = view.error?.code ?? 'completed'
    codes.set(outcome, (codes.get(outcome) ?? 0) + 1)
    gaps.push(longestGap([...ofRun.map(({ request }) => request.atMs), ended.endedAtMs]))
    // a try that no model answered leaves no action: its tokens are in the ledger alone
    reported += sumReportedTokens(ofRun.filter(({ failure }) => failure?.code !== 'model_unavailable'))
    counted += view.usage.total_tokens
    maxReported = Math.max(
      maxReported,
      ...ofRun.map(({ request }) => request.reportedUsage?.total_tokens ?? 0),
    )
    if (isUnlucky(ended)) unlucky++
    failures.push(...checkRun(ended, mostMs).map((what) => `run ${run} (${admitted.id}) ${what}`))
  }
  /** Goes on until the model was asked so often. */
  const until = async (count: number): Promise<void> => {
    const lane = async (): Promise<void> => {
      while (model.requests().length < count) await one(++runs)
    }
    await Promise.all(Array.from({ length: inFlight }, lane))
    say(
      `${model.requests().length} calls in ${runs} runs, ${failures.length} failures ${failures.at(-1) ?? ''}`,
    )
  }

  await until(calls * 0.25)
  /** What the worker holds after some runs without failures: the last big reply is then forgotten everywhere. */
  const held = async (): Promise<Report> => {
    calm(true)
    await until(model.requests().length + rinse)
    calm(false)
    const report = worker.value.next('report')
    worker.value.send('report')
    return report
  }
  await until(calls * 0.5)
  const middle = await held()
  await until(calls)
  const end = await held()
  const gained = end.heapBytes + end.bufferBytes - middle.heapBytes - middle.bufferBytes
  // what a few calls warm up tells nothing
  if (scale >= 0.2 && gained > mayGrowBytes)
    failures.push(`the worker gained ${megabytes(gained)} MB from the middle to the end`)
  const mayBeMissed = Math.max(reported * mayComeLate.share, maxReported * mayComeLate.replies)
  if (reported - counted > mayBeMissed) failures.push(`${reported} tokens were reported, ${counted} counted`)
  if (unlucky > Math.max(6, runs * mayBeUnlucky))
    failures.push(`${unlucky} runs failed without a failure of the model`)
  const asked = model.requests().length
  const connections = await connectionsLeft(model, signal)
  if (connections > 0) failures.push(`${connections} connections to the model are still open`)
  const errors = worker.value.messages.filter((message) => message.event === 'error')
  failures.push(...errors.map(({ text }) => `the worker logged an error: ${text}`))
  worker.value.signal('SIGTERM')
  const { code, stderr } = await worker.value.ended
  if (code !== 0) failures.push(`the worker ended with ${code}: ${stderr}`)
  return {
    figures: {
      'model calls': model.requests().length,
      'of them after the runs': model.requests().length - asked,
      'of them that failed': [...requests.values()].flat().filter(({ failure }) => failure !== null).length,
      runs,
      ...Object.fromEntries([...codes].sort().map(([name, count]) => [`runs ${name}`, count])),
      'of the failed, by a busy machine': unlucky,
      'tokens reported': reported,
      'tokens counted': counted,
      'longest wait within a run, ms (p50, p99, most)': [0.5, 0.99, 1]
        .map((share) => quantile(gaps, share))
        .join(', '),
      'heap and buffers of the worker at half, MB': megabytes(middle.heapBytes + middle.bufferBytes),
      'heap and buffers of the worker at the end, MB': megabytes(end.heapBytes + end.bufferBytes),
      'connections left': connections,
    },
    failures,
  }
}

const megabytes = (bytes: number): number => Math.round(bytes / 2 ** 20)

/**
 * Idle ones are kept for some seconds by the client, and learning asks after the runs: what is left half a minute after the
 * last request is a leak.
 */
const connectionsLeft = async (
  model: Pick<FakeModel, 'connections' | 'requests'>,
  signal: AbortSignal,
): Promise<number> => {
  for (;;) {
    const left = await model.connections()
    const lastAtMs = model.requests().at(-1)?.atMs ?? 0
    if (left === 0 || performance.now() > lastAtMs + 30_000) return left
    await pause(200, undefined, { signal })
  }
}

const disposable = <Value>(value: Value, close: (value: Value) => Promise<void>) => ({
  value,
  [Symbol.asyncDispose]: () => close(value),
})
