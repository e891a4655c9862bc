import { isMasonError, type MasonError } from '../../state/errors.ts'
import { type ModelWork, noTracer, type Tracer } from '../../state/ports/tracer.ts'
import type { ModelGateway, ModelResponse, ModelSelector, SkippedCandidate } from '../ports/call-ports.ts'
import type { CanonicalRequest, ModelCaller, Registry } from '../ports/model-ports.ts'
import type { ResponseFormats } from '../providers/response-formats.ts'
import { listImages } from '../routing/vision.ts'
import {
  createCallError,
  createNoModelError,
  type FailedRequest,
  type ModelErrorDetail,
} from './call-errors.ts'
import { type CallServices, type ModelCall, startCall } from './model-call.ts'
import { createModelsPort } from './models-port.ts'
import { type CallRound, planRetryWait, type RetryWait } from './retry-wait.ts'

const toModelWork = ({ role, messages, input, query, stream }: CanonicalRequest): ModelWork => {
  const about = { role, stream, inputs: input.length }
  if (messages.length > 0) return { operation: 'chat', ...about }
  if (query !== null) return { operation: 'rerank', ...about }
  return { operation: input.length > 0 ? 'embeddings' : 'generate_content', ...about }
}

/** Reports one call to the tracer: the model that answered, its usage and its attempts. */
const createCallTracer =
  (tracer: Tracer, registry: Pick<Registry, 'view'>) =>
  (request: CanonicalRequest, call: () => Promise<ModelResponse>): Promise<ModelResponse> =>
    tracer.model(toModelWork(request), async (note) => {
      try {
        const response = await call()
        const { model, usage, attempts, result } = response
        const entry = registry.view.models.get(model)
        note({
          tries: attempts.length + 1,
          model,
          usage,
          finish: result.finish,
          ...(entry && { upstream: entry.upstream_name, vendor: entry.vendor.name }),
        })
        return response
      } catch (error) {
        const detail = isMasonError(error)
          ? (error.detail as Partial<ModelErrorDetail> | undefined)
          : undefined
        if (detail?.attempts !== undefined) note({ tries: detail.attempts })
        throw error
      }
    })

/** What the gateway is made of. */
export type ModelGatewayOptions = CallServices & {
  random?: () => number
  /** What a run has cost so far; absent: costs are not read. */
  readRunCost?: (runId: string) => Promise<number>
  /** Which budget a caller has used up; absent: there are none. */
  findReachedBudget?: (caller: ModelCaller) => Promise<object | null>
  tracer?: Tracer
  createReranker?: ResponseFormats['createReranker']
}

const describeSelector = ({ role, model, category }: ModelSelector): string =>
  model === undefined ? `${category ?? `role "${role}"`}` : `"${model}"`

/** Whether no other candidate could have answered. */
const isOnlyCandidate = (
  { candidate: { model, key } }: FailedRequest,
  passedOver: readonly SkippedCandidate[],
): boolean =>
  passedOver.every((one) => one.model === model.name && [null, key?.label ?? null].includes(one.key_label))

/** The error of a call without an answer: that of its only candidate, or a prompt too long for all; else one that lists all. */
const createFinalError = (
  selector: ModelSelector,
  tried: readonly FailedRequest[],
  { passedOver }: CallRound,
  spent: { attempts: number; usage: Parameters<typeof createCallError>[1]['usage'] },
  { earliestMs, outageMs, isLimited }: RetryWait,
): MasonError => {
  const [first] = tried
  const waitMs = outageMs === null ? undefined : Math.ceil(outageMs)
  const isOnly = first !== undefined && tried.length === 1 && isOnlyCandidate(first, passedOver)
  // a model that is away may take it
  const tooLong = tried.find(({ error }) => error.code === 'model_context_too_long' && outageMs === null)
  const own = isOnly ? first : tooLong
  if (own) return createCallError(own, { ...spent, waitMs })
  return createNoModelError({
    selector: describeSelector(selector),
    tried,
    passedOver,
    ...spent,
    retryAfterMs: earliestMs,
    waitMs,
    limited: isLimited && tried.every(({ error: { code, retry } }) => code === 'model_rate_limited' && retry),
  })
}

const withImages = (selector: ModelSelector, ask: CanonicalRequest): ModelSelector =>
  listImages(ask).length > 0 ? { ...selector, images: true } : selector

/** Milliseconds between two rounds in which no request was sent. */
const minWaitMs = 20

/** Opens the call path; its contract is at the type `ModelGateway`. */
export const createModelGateway = (options: ModelGatewayOptions): ModelGateway => {
  const { registry, chooser, health, clock, log, retry, random = Math.random, createReranker } = options
  const trace = createCallTracer(options.tracer ?? noTracer, registry)

  const answer = async (request: ModelCall, signal: AbortSignal) => {
    const { selector, caller } = request
    const call = startCall(options, request, signal)
    let { patienceMs = Infinity } = selector
    const { closedPatienceMs = patienceMs, timeLeftMs = Infinity } = selector
    for (let round = 1; ; ) {
      signal.throwIfAborted()
      const { view } = registry
      const end = await call.runRound(chooser.choose(view, selector, caller, call.source))
      if ('response' in end) return end.response
      const progress = { view, round, startedAtMs: call.startedAtMs, source: call.source }
      const wait = planRetryWait(end, progress, { health, clock, retry, random })
      const isSent = end.tried.length > 0
      const isHasty = selector.oneShot === true && !isSent
      // else the caller's time would be up without a word of why it had no answer
      const leftMs = wait.outageMs === null ? Infinity : call.startedAtMs + timeLeftMs - clock.monotonicMs()
      const mayWaitMs = Math.min(leftMs, patienceMs, isSent ? Infinity : closedPatienceMs)
      if (wait.ms === null || wait.ms > mayWaitMs || isHasty)
        throw createFinalError(selector, [...call.tried.values()], end, call.spent(), wait)
      patienceMs -= wait.ms
      log.warn({ role: selector.role, ...call.spent(), delay_ms: Math.round(wait.ms) }, 'model call again')
      if (wait.untilChange) await health.changed(wait.ms, signal)
      else await clock.sleep(isSent ? wait.ms : Math.max(wait.ms, minWaitMs), signal)
      // a round in which all were closed or at their limits does not count
      if (isSent) round += 1
    }
  }

  /** Logs for admins what the error for the business leaves out. */
  const logCause = ({ role }: ModelSelector, { business_id, run_id }: ModelCaller, error: unknown): void => {
    if (!isMasonError(error) || !isMasonError(error.cause)) return
    const { code, message, remedy, detail } = error.cause
    log.warn({ role, business_id, run_id, code, error: message, remedy, detail }, 'a model call failed')
  }

  const ask: ModelGateway['ask'] = (selector, request, caller, onDelta, signal) =>
    trace(request, () =>
      answer({ selector: withImages(selector, request), ask: request, caller, onDelta }, signal),
    ).catch((error: unknown) => {
      logCause(selector, caller, error)
      throw error
    })

  return {
    ask,
    for: (caller) => ({
      ...createModelsPort({ ...options, ask }, caller),
      ...(createReranker && { rerank: createReranker({ ask, registry, chooser, log }, caller) }),
    }),
    list: (caller) =>
      [...registry.view.models.values()]
        .filter((model) =>
          caller ? chooser.isOpenTo(registry.view, model, caller) : model.active && model.vendor.active,
        )
        .map(({ name, vendor, category, capabilities }) => ({
          name,
          vendor: vendor.name,
          category,
          capabilities,
        })),
  }
}
