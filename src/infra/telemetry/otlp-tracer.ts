import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { NodeTracerProvider, RandomIdGenerator, type SpanProcessor } from '@opentelemetry/sdk-trace-node'
import { MasonError } from '../../state/errors.ts'
import { Stopped } from '../../state/stopped.ts'
import type { Tracer } from '../../state/trace.ts'
import * as names from './names.ts'
import { createSpanClock } from './span-clock.ts'
import { type Place, readTraceparent, rootOfRun } from './trace-ids.ts'

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
} as const satisfies Record<names.SpanKindName, SpanKind>

/** The code of a fault of ours, else the class of the error; never its message. */
const typeOf = (error: unknown): string =>
  error instanceof MasonError ? error.code : error instanceof Error ? error.name : '_OTHER'

type Start = { startTime: number; links?: Link[] }

/**
 * The tracer over OpenTelemetry's SDK. It registers nothing globally: several may live in one process. Sampler, limits
 * and resource follow the OTEL_* variables of the environment, as the SDK reads them.
 */
export const createOtlpTracer = (
  processor: SpanProcessor,
  version: string,
): { tracer: Tracer; shutdown(): Promise<void> } => {
  const random = new RandomIdGenerator()
  /** Where the next span stands, when that is not for chance to say. Set and used without a pause between. */
  let next: Place | null = null
  const provider = new NodeTracerProvider({
    spanProcessors: [processor],
    idGenerator: {
      generateTraceId: () => next?.traceId ?? random.generateTraceId(),
      generateSpanId: () => next?.spanId ?? random.generateSpanId(),
    },
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': names.serviceName, 'service.version': version }))
      .merge(detectResources({ detectors: [envDetector] })),
  })
  const sdk = provider.getTracer(names.scopeName, version)
  const now = createSpanClock()
  const current = new AsyncLocalStorage<Span>()

  const start = (
    { name, kind, attributes }: names.Named,
    at: Start,
    parent: SpanContext | undefined,
  ): Span => {
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
    return sdk.startSpan(name, { kind: kinds[kind], attributes, ...at }, context)
  }
  const startRoot = (runId: string, named: names.Named, at: Start): Span => {
    next = rootOfRun(runId)
    try {
      return start(named, at, undefined)
    } finally {
      next = null
    }
  }

  /** Whether a run's trace is kept is decided by its root; who cannot see the root asks the same sampler again. */
  const remoteRoot = (runId: string): SpanContext => ({
    ...startRoot(runId, names.unsentSpan, { startTime: now() }).spanContext(),
    isRemote: true,
  })

  const within = async <T>(
    named: names.Named,
    parent: SpanContext | undefined,
    work: (span: Span) => Promise<T>,
  ): Promise<T> => {
    const span = start(named, { startTime: now() }, parent)
    try {
      return await current.run(span, () => work(span))
    } catch (error) {
      // cancelled, handed back or out of time: somebody's will, and no fault
      if (error instanceof Stopped) span.setAttribute(names.stopped, error.stop.kind)
      else fail(span, typeOf(error))
      throw error
    } finally {
      span.end(now())
    }
  }
  const inside = () => current.getStore()?.spanContext()

  const tracer: Tracer = {
    accepted(run) {
      const { entry, replayed, run_id } = run
      const named = names.acceptedSpan(run)
      const from = entry.by === 'http' ? readTraceparent(entry.traceparent) : null
      const at = { startTime: entry.beganAtMs, links: from ? [linkTo(from)] : [] }
      // the root of a run that was there before is there too
      const span = replayed ? start(named, at, remoteRoot(run_id)) : startRoot(run_id, named, at)
      span.end(Math.max(now(), entry.beganAtMs))
    },
    run: (about, work) =>
      within(names.runSpan(about), remoteRoot(about.run_id), (span) =>
        work((facts) => {
          span.setAttributes(names.runFacts(facts))
          if (facts.outcome?.status === 'failed') fail(span, facts.outcome.error.code)
        }),
      ),
    visit: (about, work) =>
      within(names.visitSpan(about), inside(), (span) =>
        work((facts) => {
          span.setAttributes(names.visitFacts(facts))
          if (facts.code !== null) fail(span, facts.code)
        }),
      ),
    model: (about, work) =>
      within(names.modelSpan(about), inside(), (span) =>
        work((facts) => {
          const { name, attributes } = names.modelFacts(about, facts)
          span.updateName(name).setAttributes(attributes)
        }),
      ),
    retrieval: (work) =>
      within(names.retrievalSpan, inside(), (span) =>
        work((facts) => void span.setAttributes(names.retrievalFacts(facts))),
      ),
    learning: (about, work) => within(names.learningSpan(about), remoteRoot(about.run_id), work),
  }
  return { tracer, shutdown: () => provider.shutdown() }
}

const linkTo = ({ traceId, spanId, sampled }: NonNullable<ReturnType<typeof readTraceparent>>): Link => {
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return { context: { traceId, spanId, traceFlags, isRemote: true } }
}

const fail = (span: Span, code: string): void => {
  span.setAttribute(names.errorType, code).setStatus({ code: SpanStatusCode.ERROR })
}
