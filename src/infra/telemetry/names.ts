import type {
  AcceptedRun,
  LearningWork,
  ModelFacts,
  ModelWork,
  RunFacts,
  RunWork,
  VisitFacts,
  VisitWork,
} from '../../state/trace.ts'

/**
 * All names of spans and attributes. `gen_ai.*` as in the semantic conventions 1.45.0, where all of it is still in
 * "Development" and may be named anew; `plan` is of their later repository semantic-conventions-genai. `http.*` and
 * `error.type` are stable. What the conventions have no name for is `mason.*`. Nothing that users, models or tools said
 * may become an attribute: not the reason of a cancel, not a message of an error.
 */
export type Attributes = Record<string, string | number | boolean | string[]>
export type SpanKindName = 'internal' | 'server' | 'consumer' | 'client'
export type Named = { name: string; kind: SpanKindName; attributes: Attributes }

export const scopeName = 'mason'
export const serviceName = 'mason'

const operation = 'gen_ai.operation.name'

const ofRun = ({ run_id, business_id }: Pick<RunWork, 'run_id' | 'business_id'>): Attributes => ({
  'mason.run.id': run_id,
  'mason.business.id': business_id,
})
const ofTurn = (run: Omit<AcceptedRun, 'entry' | 'replayed'>): Attributes => ({
  ...ofRun(run),
  'gen_ai.conversation.id': run.session_id,
  'mason.turn': run.turn,
})

/** The root of a run's trace, or what a repeated request adds to it. It ends when the run is durable, before the answer is sent. */
export const acceptedSpan = ({ entry, replayed, ...run }: AcceptedRun): Named => {
  const attributes = { ...ofTurn(run), 'mason.replayed': replayed }
  switch (entry.by) {
    case 'http': {
      const http = { 'http.request.method': 'POST', 'http.route': entry.route }
      return { name: `POST ${entry.route}`, kind: 'server', attributes: { ...attributes, ...http } }
    }
    case 'queue': {
      const messaging = {
        'messaging.system': 'bullmq',
        'messaging.destination.name': 'mason-runs',
        'messaging.operation.type': 'process',
        'messaging.operation.name': 'process',
      }
      return { name: 'process mason-runs', kind: 'consumer', attributes: { ...attributes, ...messaging } }
    }
    case 'call':
      return { name: 'submit', kind: 'internal', attributes }
    default:
      throw entry satisfies never
  }
}

/** Asks the sampler, and is never sent. */
export const unsentSpan: Named = { name: 'unsent', kind: 'internal', attributes: {} }

export const runSpan = ({ epoch, claims, worker_id, ...run }: RunWork): Named => ({
  name: `invoke_workflow ${serviceName}`,
  kind: 'internal',
  attributes: {
    [operation]: 'invoke_workflow',
    'gen_ai.workflow.name': serviceName,
    ...ofTurn(run),
    'mason.run.epoch': epoch,
    'mason.run.claims_without_action': claims,
    'mason.worker.id': worker_id,
  },
})

/** The reason of a cancel is somebody's words. */
export const runFacts = ({ left, outcome }: RunFacts): Attributes => ({
  'mason.run.left': left,
  ...(outcome && { 'mason.run.status': outcome.status }),
  ...(outcome && outcome.status !== 'cancelled' && { 'mason.run.reason': outcome.reason }),
})

/** Nodes that think; the others have no operation of the conventions. */
const operations: Readonly<Record<string, string>> = {
  planner: 'plan',
  reflection: 'invoke_agent',
  compaction: 'invoke_agent',
}

export const visitSpan = ({ name, kind, call }: VisitWork): Named => {
  const node = { 'mason.node': name, ...(call !== null && { 'mason.call.index': call }) }
  if (kind === 'tool') {
    const attributes = {
      [operation]: 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.type': 'function',
    }
    return { name: `execute_tool ${name}`, kind: 'internal', attributes: { ...attributes, ...node } }
  }
  const known = operations[name]
  if (known === undefined) return { name, kind: 'internal', attributes: node }
  const attributes = { [operation]: known, 'gen_ai.agent.name': name, ...node }
  return { name: `${known} ${name}`, kind: 'internal', attributes }
}

export const visitFacts = ({ action_id, waits }: VisitFacts): Attributes => ({
  ...(action_id !== null && { 'mason.action.id': action_id }),
  ...(waits && { 'mason.waits_for_person': true }),
})

export const modelSpan = ({ operation: name, role, stream, inputs }: ModelWork): Named => ({
  name,
  kind: 'client',
  attributes: {
    [operation]: name,
    'mason.model.role': role,
    ...(name === 'chat' ? { 'gen_ai.request.stream': stream } : { 'mason.model.inputs': inputs }),
  },
})

/** With the name of the span, once it is known which model answered. */
export const modelFacts = (
  { operation: name }: ModelWork,
  { tries, model, upstream, vendor, finish, usage }: ModelFacts,
): { name: string; attributes: Attributes } => ({
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

export const retrievalSpan: Named = {
  name: 'retrieval memory',
  kind: 'internal',
  attributes: { [operation]: 'retrieval', 'gen_ai.data_source.id': 'memory' },
}
export const retrievalFacts = ({ found }: { found: number }): Attributes => ({ 'mason.memory.found': found })

export const learningSpan = ({ tries, ...run }: LearningWork): Named => ({
  name: 'learn_from_run',
  kind: 'internal',
  attributes: { ...ofRun(run), 'mason.learning.tries': tries },
})

export const errorType = 'error.type'
/** Why work was broken off from outside; the kind alone. */
export const stopped = 'mason.stopped'
