import type { FormatView, PollFormat } from '../../../state/registry/response-format.ts'
import type { AnswerReader, CanonicalResult, ProviderOutcome, ProviderRequest } from '../ports.ts'
import { type Fault, faultOfClock, faultOfReply } from '../wire/faults.ts'
import type { Request } from '../wire/send.ts'
import { talk, type Wire } from '../wire/talk.ts'
import { openAnswer } from './answer.ts'
import { addressUnder, pollData } from './request.ts'
import { renderPath } from './template.ts'
import type { Text } from './text.ts'

/** Answers that come later: the job is asked for until it is done, failed, or the time is over. */

export type Poll = PollFormat & { text: Text }

/** So many looks in a row may fail before the job is given up: it is paid for, so a hiccup must not lose it. */
const mostFailures = 5

type Options = {
  wire: Wire
  request: ProviderRequest
  /** The request that submitted the job; its headers serve again. */
  submitted: Request
  reader: AnswerReader
  format: FormatView
  poll: Poll
}

const failed = (result: CanonicalResult, status: string): ProviderOutcome => {
  const fault: Fault = { code: 'model_unavailable', what: `ended its job as ${status}`, retry: false }
  return { ok: false, fault, usage: result.usage }
}

/** Rejects only when the caller aborts, with the signal's reason; no look is begun after that. */
export const followJob = async (
  first: CanonicalResult,
  { wire, request, submitted, reader, format, poll }: Options,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { clock } = wire
  const { model, usedIds, endsAtMs } = request
  const { timeouts: clocks, base_url, allow_private: allowPrivate } = model.endpoint
  const { 'content-type': _, ...headers } = submitted.headers
  const lookOnce = async (jobId: string): Promise<ProviderOutcome> => {
    const path = renderPath(poll.text, pollData(model, jobId), '/poll/path')
    const look = { method: poll.method, url: addressUnder(base_url, path), headers, body: null }
    const { onDelta, onRaw } = request
    const answer = openAnswer({ reader, format, usedIds, onDelta, ...(onRaw === undefined ? {} : { onRaw }) })
    const exchanging = { request: look, allowPrivate, clocks, endsAtMs, done: null, take: answer.take }
    return answer.outcome(await talk(wire, { ...exchanging, expects: 'whole' }, signal))
  }

  const jobId = first.job?.id ?? ''
  let result = first
  let failures = 0
  let waitMs = poll.interval_ms
  for (;;) {
    const status = result.job?.status ?? null
    if (status !== null && poll.failed.includes(status)) return failed(result, status)
    if (status !== null && poll.done.includes(status)) return { ok: true, result }
    if (jobId === '')
      return { ok: false, fault: faultOfReply('named no job to ask for'), usage: result.usage }
    const leftMs = endsAtMs - clock.monotonicMs()
    if (waitMs >= leftMs) {
      return { ok: false, fault: faultOfClock('total', clocks.totalMs), usage: result.usage }
    }
    await clock.sleep(waitMs, signal)
    const outcome = await lookOnce(jobId)
    waitMs = poll.interval_ms
    if (outcome.ok) {
      const usage = outcome.result.usage ?? result.usage
      result = { ...outcome.result, usage }
      failures = 0
    } else {
      failures += 1
      if (!outcome.fault.retry || failures === mostFailures) {
        return { ...outcome, usage: outcome.usage ?? result.usage }
      }
      waitMs = Math.max(waitMs, outcome.fault.retryAfterMs ?? 0)
    }
  }
}
