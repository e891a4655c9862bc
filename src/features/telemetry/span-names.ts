import type {
  AcceptedRun,
  LearningWork,
  ModelFacts,
  ModelWork,
  RunFacts,
  RunWork,
  VisitFacts,
  VisitWork,
} from '../../state/ports/tracer.ts'

/**
 * All names of spans and attributes. `gen_ai.*` is from the semantic conventions 1.45.0, where it has the status
 * "Development" and may still be renamed; `plan` is from the later repository semantic-conventions-genai. `http.*` and
 * `error.type` are stable. Names without a convention are `mason.*`. No text of users, models or tools may become an
 * attribute, such as the reason of a cancel or the message of an error.
 */
export type SpanAttributes = Record<string, string | number | boolean | string[]>
/** The name, kind (as OpenTelemetry names it) and first attributes of a span. */
export type NamedSpan = {
  name: string
  kind: 'INTERNAL' | 'SERVER' | 'CONSUMER' | 'CLIENT'
  attributes: SpanAttributes
}

/** The instrumentation scope. */
export const scopeName = 'mason'
/** The default `service.name`. */
export const serviceName = 'mason'

const operationAttribute = 'gen_ai.operation.name'

const toRunIdAttributes = ({
  run_id,
  business_id,
}: Pick<RunWork, 'run_id' | 'business_id'>): SpanAttributes => ({
  'mason.run.id': run_id,
  'mason.business.id': business_id,
})
const toTurnAttributes = (run: Omit<AcceptedRun, 'entry' | 'replayed'>): SpanAttributes => ({
  ...toRunIdAttributes(run),
  'gen_ai.conversation.id': run.session_id,
  'mason.turn': run.turn,
})

/** The root span of a run, or the span that a repeated request adds. It ends when the run is durable, before the response is sent. */
export const toAcceptedSpan = ({ entry, replayed, ...run }: AcceptedRun): NamedSpan => {
  const attributes = { ...toTurnAttributes(run), 'mason.replayed': replayed }
  switch (entry.by) {
    case 'http': {
      const http = { 'http.request.method': 'POST', 'http.route': entry.route }
      return { name: `POST ${entry.route}`, kind: 'SERVER', attributes: { ...attributes, ...http } }
    }
    case 'queue': {
      const messaging = {
        'messaging.system': 'bullmq',
        'messaging.destination.name': 'mason-runs',
        'messaging.operation.type': 'process',
        'messaging.operation.name': 'process',
      }
      return { name: 'process mason-runs', kind: 'CONSUMER', attributes: { ...attributes, ...messaging } }
    }
    case 'call':
      return { name: 'submit', kind: 'INTERNAL', attributes }
    default:
      throw entry satisfies never
  }
}

/** A span that only asks the sampler and is never sent. */
export const unsentSpan: NamedSpan = { name: 'unsent', kind: 'INTERNAL', attributes: {} }

/** A worker's work on a run, from its claim to its release. */
export const toRunSpan = ({ epoch, claims, worker_id, ...run }: RunWork): NamedSpan => ({
  name: `invoke_workflow ${serviceName}`,
  kind: 'INTERNAL',
  attributes: {
    [operationAttribute]: 'invoke_workflow',
    'gen_ai.workflow.name': serviceName,
    ...toTurnAttributes(run),
    'mason.run.epoch': epoch,
    'mason.run.claims_without_action': claims,
    'mason.worker.id': worker_id,
  },
})

/** How the work on a run ended. The reason of a cancel is a person's text, so it is left out. */
export const toRunAttributes = ({ exit, outcome }: RunFacts): SpanAttributes => ({
  'mason.run.left': exit,
  ...(outcome && { 'mason.run.status': outcome.status }),
  ...(outcome && outcome.status !== 'cancelled' && { 'mason.run.reason': outcome.reason }),
})

/** Nodes that call a model; the conventions have no operation for other nodes. */
const operations: Readonly<Record<string, string>> = {
  planner: 'plan',
  reflection: 'invoke_agent',
  compaction: 'invoke_agent',
}

/** A visit of a node or a tool. */
export const toVisitSpan = ({ name, kind, call }: VisitWork): NamedSpan => {
  const node = { 'mason.node': name, ...(call !== null && { 'mason.call.index': call }) }
  if (kind === 'tool') {
    const attributes = {
      [operationAttribute]: 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.type': 'function',
    }
    return { name: `execute_tool ${name}`, kind: 'INTERNAL', attributes: { ...attributes, ...node } }
  }
  const known = operations[name]
  if (known === undefined) return { name, kind: 'INTERNAL', attributes: node }
  const attributes = { [operationAttribute]: known, 'gen_ai.agent.name': name, ...node }
  return { name: `${known} ${name}`, kind: 'INTERNAL', attributes }
}

/** The result of a visit. */
export const toVisitAttributes = ({ action_id, isWaiting }: VisitFacts): SpanAttributes => ({
  ...(action_id !== null && { 'mason.action.id': action_id }),
  ...(isWaiting && { 'mason.waits_for_person': true }),
})

/** A model request, before a model is chosen. */
export const toModelSpan = ({ operation: name, role, stream, inputs }: ModelWork): NamedSpan => ({
  name,
  kind: 'CLIENT',
  attributes: {
    [operationAttribute]: name,
    'mason.model.role': role,
    ...(name === 'chat' ? { 'gen_ai.request.stream': stream } : { 'mason.model.inputs': inputs }),
  },
})

/** The result of a model request, with the name of the span once the model is known. */
export const toModelAttributes = (
  { operation: name }: ModelWork,
  { tries, model, upstream, vendor, finish, usage }: ModelFacts,
): { name: string; attributes: SpanAttributes } => ({
  name: model === undefined ? name : `${name} ${model}`,
  attributes: {
    'mason.model.tries': tries,
    ...(model !== undefined && { 'mason.model.alias': model }),
    ...(upstream !== undefined && { 'gen_ai.request.model': upstream }),
    ...(vendor !== undefined && { 'gen_ai.provider.name': vendor }),
    ...(finish !== undefined && name === 'chat' && { 'gen_ai.response.finish_reasons': [finish] }),
    ...(usage && {
      'gen_ai.usage.input_tokens': usage.prompt_tokens,
      'gen_ai.usage.output_tokens': usage.completion_tokens,
      'gen_ai.usage.cache_read.input_tokens': usage.cached_tokens,
      'gen_ai.usage.reasoning.output_tokens': usage.reasoning_tokens,
    }),
  },
})

/** A search of the memory. */
export const retrievalSpan: NamedSpan = {
  name: 'retrieval memory',
  kind: 'INTERNAL',
  attributes: { [operationAttribute]: 'retrieval', 'gen_ai.data_source.id': 'memory' },
}
/** The result of a search of the memory. */
export const toRetrievalAttributes = ({ found }: { found: number }): SpanAttributes => ({
  'mason.memory.found': found,
})

/** Learning from an ended run. */
export const toLearningSpan = ({ tries, ...run }: LearningWork): NamedSpan => ({
  name: 'learn_from_run',
  kind: 'INTERNAL',
  attributes: { ...toRunIdAttributes(run), 'mason.learning.tries': tries },
})

/** The code or class of the error that ended a span. */
export const errorTypeAttribute = 'error.type'
/** Why work was stopped from outside; the kind alone. */
export const stopKindAttribute = 'mason.stopped'
