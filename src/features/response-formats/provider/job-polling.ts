import type {
  CanonicalResult,
  PendingJob,
  ProviderOutcome,
  ProviderRequest,
} from '../../../models/ports/model-ports.ts'
import { type AnswerDraft, exchangeAnswer } from '../../../models/providers/answer-exchange.ts'
import { joinUrl } from '../../../models/providers/provider-request.ts'
import type { PollFormat } from '../../../models/schemas/response-format.ts'
import type { ProviderHttpRequest, Transport } from '../../../models/transport/http-exchange.ts'
import { downloadMedia } from '../../../models/transport/media-download.ts'
import {
  createBadReplyError,
  createTimeoutError,
  type ProviderError,
} from '../../../models/transport/provider-errors.ts'
import { renderPath } from '../templates/request-template.ts'
import { compileTemplateText, type TemplateText } from '../templates/template-text.ts'

/** How a response format polls a job, with its compiled path. */
export type JobPoll = PollFormat & { text: TemplateText; contentText: TemplateText | null }

const pollFields: ReadonlySet<string> = new Set(['job_id', 'model'])

/** Throws TemplateTextError. */
export const compilePoll = (poll: PollFormat): JobPoll => {
  const rules = { fields: pollFields, allowsKey: false }
  return {
    ...poll,
    text: compileTemplateText(poll.path, rules),
    contentText: poll.content === undefined ? null : compileTemplateText(poll.content, rules),
  }
}

/** Consecutive polls that may fail before the job is given up: it is paid for, so a short failure must not lose it. */
const defaultMaxFailures = 5

type Options = {
  transport: Transport
  request: ProviderRequest
  /** The request that submitted the job; polls reuse its headers. */
  submitted: ProviderHttpRequest
  openDraft(): AnswerDraft
  poll: JobPoll
  maxFailures?: number
}

const toFailedOutcome = (result: CanonicalResult, status: string): ProviderOutcome => {
  const error: ProviderError = { code: 'model_unavailable', what: `ended its job as ${status}`, retry: false }
  return { ok: false, error, usage: result.usage }
}

/** Polls one job, a request at a time. */
const createPolling = (
  first: CanonicalResult,
  { transport, request, submitted, openDraft, poll, maxFailures = defaultMaxFailures }: Options,
  signal: AbortSignal,
) => {
  const { clock } = transport
  const { model, endsAtMs } = request
  const { endpoint } = model
  const { 'content-type': _, ...headers } = submitted.headers
  const jobId = first.job?.id ?? ''
  let result = first
  let failures = 0
  const isDone = (): boolean => poll.done.includes(result.job?.status ?? '')
  const toUrl = (text: TemplateText, pointer: string): string =>
    joinUrl(endpoint.base_url, renderPath(text, { job_id: jobId, model: model.upstream_name }, pointer))

  const fetchContent = async (text: TemplateText): Promise<ProviderOutcome> => {
    const url = toUrl(text, '/poll/content')
    const downloaded = await downloadMedia(transport, { url, headers, endpoint, endsAtMs }, signal)
    return 'error' in downloaded
      ? { ok: false, error: downloaded.error, usage: null }
      : { ok: true, result: { ...result, video: downloaded } }
  }
  const send = (): Promise<ProviderOutcome> => {
    if (isDone() && poll.contentText !== null) return fetchContent(poll.contentText)
    const url = toUrl(poll.text, '/poll/path')
    const pollRequest = { method: poll.method, url, headers, body: null }
    const exchange = { request: pollRequest, expects: 'whole' as const, done: null }
    return exchangeAnswer(transport, exchange, openDraft(), request, signal)
  }
  /** What the latest result says. A job that is done has its content fetched at once. */
  const judge = (waitMs = poll.interval_ms): ProviderOutcome | PendingJob => {
    const status = result.job?.status ?? null
    if (status !== null && poll.failed.includes(status)) return toFailedOutcome(result, status)
    if (isDone() && (poll.contentText === null || result.video !== null)) return { ok: true, result }
    if (jobId === '')
      return { ok: false, error: createBadReplyError('named no job to ask for'), usage: result.usage }
    if (waitMs >= endsAtMs - clock.monotonicMs())
      return { ok: false, error: createTimeoutError('total', endpoint.timeouts.totalMs), usage: result.usage }
    return { againInMs: isDone() && failures === 0 ? 0 : waitMs }
  }

  return {
    judge,
    async poll(): Promise<ProviderOutcome | PendingJob> {
      const outcome = await send()
      if (outcome.ok) {
        result = { ...outcome.result, usage: outcome.result.usage ?? result.usage }
        failures = 0
        return judge()
      }
      failures += 1
      const { retry, reported, code, retryAfterMs = 0 } = outcome.error
      // what a vendor says of the job is final; that it limits our polls is not
      const isFinal = !retry || (reported && code !== 'model_rate_limited')
      if (isFinal || failures === maxFailures) return { ...outcome, usage: outcome.usage ?? result.usage }
      return judge(Math.max(poll.interval_ms, retryAfterMs))
    },
  }
}

const isPending = (outcome: ProviderOutcome | PendingJob): outcome is PendingJob => 'againInMs' in outcome

/** Polls a job until it is done, failed, or out of time. Rejects only when the caller aborts, with the signal's reason. */
export const pollJob = async (
  first: CanonicalResult,
  options: Options,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const polling = createPolling(first, options, signal)
  let outcome = polling.judge()
  while (isPending(outcome)) {
    if (outcome.againInMs > 0) await options.transport.clock.sleep(outcome.againInMs, signal)
    outcome = await polling.poll()
  }
  return outcome
}

/** Polls a job once, and fetches its content where it is done; `againInMs`: it goes on. A failed poll does not end it. */
export const pollJobOnce = async (
  job: CanonicalResult,
  options: Omit<Options, 'maxFailures'>,
  signal: AbortSignal,
): Promise<ProviderOutcome | PendingJob> => {
  const polling = createPolling(job, { ...options, maxFailures: Number.POSITIVE_INFINITY }, signal)
  let outcome = await polling.poll()
  while (isPending(outcome) && outcome.againInMs === 0) outcome = await polling.poll()
  return outcome
}
