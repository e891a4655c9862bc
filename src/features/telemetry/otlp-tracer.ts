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
import { sha256 } from '../../infra/lib/ids.ts'
import { MasonError } from '../../state/errors.ts'
import type { Tracer } from '../../state/ports/tracer.ts'
import { RunStoppedError } from '../../state/run-stop.ts'
import * as names from './span-names.ts'

/** The code of a MasonError, else the class of the error; never its message. */
const toErrorType = (error: unknown): string =>
  error instanceof MasonError ? error.code : error instanceof Error ? error.name : '_OTHER'

type SpanStart = { startTime: number; links?: Link[] }

/**
 * The tracer over OpenTelemetry's SDK. It registers nothing globally: several may live in one process. Sampler, limits
 * and resource follow the OTEL_* variables of the environment, as the SDK reads them.
 */
export const createOtlpTracer = (
  processor: SpanProcessor,
  version: string,
): { tracer: Tracer; shutdown(): Promise<void> } => {
  const random = new RandomIdGenerator()
  /** The ids of the next span, where they are not random. Set and used in the same tick. */
  let next: SpanIds | null = null
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
    { name, kind, attributes }: names.NamedSpan,
    at: SpanStart,
    parent: SpanContext | undefined,
  ): Span => {
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
    return sdk.startSpan(name, { kind: SpanKind[kind], attributes, ...at }, context)
  }
  const startRoot = (runId: string, named: names.NamedSpan, at: SpanStart): Span => {
    next = toRootSpanIds(runId)
    try {
      return start(named, at, undefined)
    } finally {
      next = null
    }
  }

  /** The root span decides whether a run's trace is sampled. A process without the root asks the same sampler again. */
  const remoteRoot = (runId: string): SpanContext => ({
    ...startRoot(runId, names.unsentSpan, { startTime: now() }).spanContext(),
    isRemote: true,
  })

  const within = async <T>(
    named: names.NamedSpan,
    parent: SpanContext | undefined,
    work: (span: Span) => Promise<T>,
  ): Promise<T> => {
    const span = start(named, { startTime: now() }, parent)
    try {
      return await current.run(span, () => work(span))
    } catch (error) {
      // cancelled, handed back or out of time is intended, not an error
      if (error instanceof RunStoppedError) span.setAttribute(names.stopKindAttribute, error.stop.kind)
      else setSpanError(span, toErrorType(error))
      throw error
    } finally {
      span.end(now())
    }
  }
  const inside = () => current.getStore()?.spanContext()

  const tracer: Tracer = {
    accepted(run) {
      const { entry, replayed, run_id } = run
      const named = names.toAcceptedSpan(run)
      const from = entry.by === 'http' ? parseTraceparent(entry.traceparent) : null
      const at = { startTime: entry.beganAtMs, links: from ? [toLink(from)] : [] }
      // a run that already exists has a root already
      const span = replayed ? start(named, at, remoteRoot(run_id)) : startRoot(run_id, named, at)
      span.end(Math.max(now(), entry.beganAtMs))
    },
    run: (about, work) =>
      within(names.toRunSpan(about), remoteRoot(about.run_id), (span) =>
        work((facts) => {
          span.setAttributes(names.toRunAttributes(facts))
          if (facts.outcome?.status === 'failed') setSpanError(span, facts.outcome.error.code)
        }),
      ),
    visit: (about, work) =>
      within(names.toVisitSpan(about), inside(), (span) =>
        work((facts) => {
          span.setAttributes(names.toVisitAttributes(facts))
          if (facts.code !== null) setSpanError(span, facts.code)
        }),
      ),
    model: (about, work) =>
      within(names.toModelSpan(about), inside(), (span) =>
        work((facts) => {
          const { name, attributes } = names.toModelAttributes(about, facts)
          span.updateName(name).setAttributes(attributes)
        }),
      ),
    retrieval: (work) =>
      within(names.retrievalSpan, inside(), (span) =>
        work((facts) => void span.setAttributes(names.toRetrievalAttributes(facts))),
      ),
    learning: (about, work) => within(names.toLearningSpan(about), remoteRoot(about.run_id), work),
  }
  return { tracer, shutdown: () => provider.shutdown().finally(() => current.disable()) }
}

const toLink = ({ traceId, spanId, sampled }: NonNullable<ReturnType<typeof parseTraceparent>>): Link => {
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return { context: { traceId, spanId, traceFlags, isRemote: true } }
}

const setSpanError = (span: Span, code: string): void => {
  span.setAttribute(names.errorTypeAttribute, code).setStatus({ code: SpanStatusCode.ERROR })
}

/** With a larger difference the wall clock was set, or the machine has slept. */
const maxDriftMs = 50

/**
 * A clock of milliseconds since 1970 with fractions. All spans of a process use one, so that earlier spans start earlier:
 * the wall clock alone has whole milliseconds and may go back.
 */
export const createSpanClock = (
  wallMs: () => number = () => Date.now(),
  monotonicMs: () => number = () => performance.now(),
): (() => number) => {
  let offset = wallMs() - monotonicMs()
  return () => {
    const nowMs = monotonicMs()
    const currentOffset = wallMs() - nowMs
    if (Math.abs(currentOffset - offset) > maxDriftMs) offset = currentOffset
    return offset + nowMs
  }
}

/** The ids of a span: 32 and 16 hexadecimal digits, as W3C Trace Context writes them. */
export type SpanIds = { traceId: string; spanId: string }

const runIdPattern = /^run_([0-9a-f]{32})$/

/**
 * The ids of the root span of a run, derived from the run id alone, so that every process knows them: the digits of the id
 * are the trace id, and a hash of it is the span id.
 */
export const toRootSpanIds = (runId: string): SpanIds => {
  const digest = sha256(runId)
  return { traceId: runIdPattern.exec(runId)?.[1] ?? digest.slice(32), spanId: digest.slice(0, 16) }
}

const traceparentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Parses a `traceparent` header (W3C Trace Context); null for an invalid one. Later versions may add fields after the flags. */
export const parseTraceparent = (text: string | undefined): (SpanIds & { sampled: boolean }) | null => {
  const [, version, traceId, spanId, flags, more] = traceparentPattern.exec(text ?? '') ?? []
  if (!traceId || !spanId || !flags || version === 'ff' || (version === '00' && more)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
