import { isMasonError, type MasonError } from '../../../state/errors.ts'
import { noTracer, type Tracer } from '../../../state/trace.ts'
import type { ModelService, PassedOver, Wanted } from '../call-ports.ts'
import { imagesOf } from '../choose/sight.ts'
import type { Caller, ModelAsk, Registry } from '../ports.ts'
import type { Retry } from '../wire/retry.ts'
import { failureOf, nobodyLeft, type Tried } from './failure.ts'
import { beginCall, type Call, type CallParts } from './one-call.ts'
import { portFor } from './port.ts'
import { tracedCall } from './traced-call.ts'
import { type Round, waitOf } from './wait.ts'

export type ServiceOptions = CallParts & {
  registry: Pick<Registry, 'view'>
  /** How often a call goes round its candidates, and how long it waits between. */
  retry: Retry
  random?: () => number
  /** What a run has cost so far; absent: nobody knows. */
  costOf?: (runId: string) => Promise<number>
  tracer?: Tracer
}

const textOf = ({ role, model, category }: Wanted): string =>
  model === undefined ? `${category ?? `role "${role}"`}` : `"${model}"`

/** Whether nobody but this one could have answered. */
const isAlone = ({ candidate: { model, key } }: Tried, passedOver: readonly PassedOver[]): boolean =>
  passedOver.every((one) => one.model === model.name && [null, key?.label ?? null].includes(one.key_label))

/** The error of a call that nobody answered: that of the only one asked, else one that lists all. */
const failureOfCall = (
  wanted: Wanted,
  tried: readonly Tried[],
  { passedOver, refused }: Round,
  spent: { attempts: number; usage: Parameters<typeof failureOf>[1]['usage'] },
  retryAfterMs: number | null,
): MasonError => {
  const [first] = tried
  return first !== undefined && tried.length === 1 && isAlone(first, passedOver)
    ? failureOf(first, spent)
    : nobodyLeft({
        wanted: textOf(wanted),
        tried,
        passedOver,
        ...spent,
        retryAfterMs,
        limited: refused.length > 0 && tried.length === 0,
      })
}

const forSight = (wanted: Wanted, ask: ModelAsk): Wanted =>
  imagesOf(ask).length > 0 ? { ...wanted, images: true } : wanted

/** Between two rounds in which nobody could be asked. */
const leastWaitMs = 20

/** THE call path; `ModelService` of ports.ts says what it keeps to. */
export const createModelService = (options: ServiceOptions): ModelService => {
  const { registry, chooser, health, clock, log, retry, random = Math.random } = options
  const trace = tracedCall(options.tracer ?? noTracer, registry)

  const answer = async (request: Call, signal: AbortSignal) => {
    const { wanted, caller } = request
    const call = beginCall(options, request, signal)
    for (let round = 1; ; ) {
      signal.throwIfAborted()
      const { view } = registry
      const choice = chooser.choose(view, wanted, caller)
      const end = await call.goRound(choice.candidates, choice.passedOver)
      if ('answered' in end) return end.answered
      const at = { view, round, startedAtMs: call.startedAtMs }
      const wait = waitOf(end, at, { health, clock, retry, random })
      const asked = end.tried.length > 0
      const isHasty = wanted.oneShot === true && !asked
      if (wait.ms === null || isHasty || (round >= retry.attempts && asked))
        throw failureOfCall(wanted, [...call.tried.values()], end, call.spent(), wait.earliestMs)
      log.warn({ role: wanted.role, ...call.spent(), delay_ms: Math.round(wait.ms) }, 'model call again')
      if (wait.untilChange) await health.changed(wait.ms, signal)
      else await clock.sleep(asked ? wait.ms : Math.max(wait.ms, leastWaitMs), signal)
      // a round in which all were closed or at their limits has used up nothing but time
      if (asked) round += 1
    }
  }

  /** What a business is not told stands here, for admins. */
  const noteWhole = ({ role }: Wanted, { business_id, run_id }: Caller, error: unknown): void => {
    if (!isMasonError(error) || !isMasonError(error.cause)) return
    const { code, message, remedy, detail } = error.cause
    log.warn({ role, business_id, run_id, code, error: message, remedy, detail }, 'a model call failed')
  }

  const ask: ModelService['ask'] = (wanted, asked, caller, onDelta, signal) =>
    trace(asked, () =>
      answer({ wanted: forSight(wanted, asked), ask: asked, caller, onDelta }, signal),
    ).catch((error: unknown) => {
      noteWhole(wanted, caller, error)
      throw error
    })

  return {
    ask,
    for: (caller) => portFor({ ask, registry, chooser, costOf: options.costOf }, caller),
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
