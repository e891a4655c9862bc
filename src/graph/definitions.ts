import type { z } from 'zod'
import type { ActionDraft } from '../state/checkpoint.ts'
import type { OngoingWork, Outcome } from '../state/outcome.ts'
import type { Patch, PatchField } from '../state/patch.ts'
import type { EffectRequest } from '../state/ports/effects.ts'
import type { PersonAnswer, Question } from '../state/ports/questions.ts'
import type { DefaultNeed, ServiceName, Services, VisitServices } from '../state/ports/services.ts'
import type { WaitOutcome, WaitRequest } from '../state/ports/waits.ts'
import type { ProvenanceOrigin } from '../state/provenance.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import type { RuntimeState, StateField } from '../state/runtime-state.ts'
import type { Scenario, Scenarios } from '../state/scenario.ts'

/** The state as a node sees it: the fields it declares. Reading any other throws, naming the field. */
export type StateView<Reads extends StateField> = Pick<RuntimeState, Reads>

/** The fields that a node or tool may change: those it declares in `writes`. */
export type DeclaredPatch<Writes extends PatchField> = Pick<Patch, Writes>

/** When a tool runs: before the planner, as a call of the planner, as a further step of a call, or to write the answer. */
export type ToolKind = 'prepare' | 'call' | 'step' | 'output'

/**
 * Everything a node has beside the state: its services, and what belongs to this visit.
 *
 * @example
 * ```ts
 * import type { NodeContext } from 'mason-runtime'
 *
 * const whose = ({ run }: NodeContext<never>): string => run.user_id
 * ```
 */
export type NodeContext<
  Writes extends PatchField,
  Needs extends ServiceName = never,
> = VisitServices<Needs> & {
  /**
   * Commits the node's one action and the fields it changed; resolves with the state that holds them.
   * The node returns what it resolves to. Throws `lease_lost` when another worker has the run.
   */
  checkpoint(draft: ActionDraft, patch?: DeclaredPatch<Writes>): Promise<RuntimeState>
  /** The job as it was admitted, with the defaults of its scenario. */
  request: AdmittedRequest
  /** The row of the state's scenario; null where it is free text, or none. */
  scenario: Scenario | null
  scenarios: Scenarios
  run: { run_id: string; session_id: string; business_id: string; user_id: string; turn: number }
  /** Milliseconds of work on the run so far, without queueing and waiting for people. */
  workedMs(): number
  /** Sends streamed text to followers of the run; best effort. A new `attempt` voids what came before. */
  stream(text: string, attempt: number): void
  /** Asks a person and resolves with the answer; parks the run until there is one. Once in a call. */
  ask(question: Question): Promise<PersonAnswer>
  /**
   * Waits for a payment, a run or a job; parks the run until it has ended. A side effect before it must say `storesResponse`.
   * The waits of a call are numbered in the order in which it asks for them: keep that order the same in every visit.
   */
  wait(request: WaitRequest): Promise<WaitOutcome>
  /** Waits for several things, which are started together; resolves once all have ended. */
  waitAll(requests: readonly WaitRequest[]): Promise<WaitOutcome[]>
  /** Does a side effect exactly once as far as its provider allows; see the effect ledger. */
  effect(request: EffectRequest): Promise<string>
  /** The parts of the graph. */
  graph: GraphInfo
  /** Whether a prepare tool has work in this state; for `load-session` only. */
  hasWork(tool: AnyTool, state: RuntimeState): Promise<boolean>
  /** Whether a call tool can do its work in this run; for `planner` only. */
  isAvailable(tool: AnyTool): Promise<boolean>
  /** How the run ends; for `end` only. */
  outcome: Outcome
  /** What goes on although the run ends, such as payments; for `end` only. */
  ongoing: OngoingWork
}

/** What nodes may know of their graph. */
export type GraphInfo = {
  tools: readonly AnyTool[]
  tool(name: string): AnyTool | undefined
  hasNode(name: string): boolean
  /** Whether a prepare tool has nothing to do in this state. */
  skips(tool: AnyTool, state: RuntimeState): boolean
  /** The same, and whether the services that the tool needs have anything for it. */
  hasWork(tool: AnyTool, state: RuntimeState, services: Services): Promise<boolean>
  /** Whether the services that a call tool needs can serve it. */
  isAvailable(tool: AnyTool, services: Services): Promise<boolean>
  /** The names of all services that a run has. */
  serviceNames: readonly string[]
}

/** What a node and a tool declare alike. */
type PartDefinition<Reads, Writes, Needs> = {
  name: string
  description: string
  reads: readonly Reads[]
  writes: readonly Writes[]
  /**
   * Services it uses beyond those of every visit; use of any other throws, naming it. Checked at start. Left out: files,
   * blobs, users and memories.
   */
  needs?: readonly Needs[]
}

/** An entry of a node's `next`. */
export type DeclaredTarget = string | { tools: ToolKind } | { one: readonly string[] }

/** A node as its file declares it. */
export type NodeDefinition<
  Reads extends StateField,
  Writes extends PatchField,
  Needs extends ServiceName = never,
> = PartDefinition<Reads, Writes, Needs> & {
  kind: 'node'
  /**
   * Where it may lead, for the picture and the check: node names, or all tools of a kind. Nodes that are named beside each
   * other may be visited at once, so they must lead to one node; `one` names nodes of which it visits one at a time.
   */
  next: readonly DeclaredTarget[]
  run(
    state: StateView<Reads>,
    context: NodeContext<Writes, Needs>,
    signal: AbortSignal,
  ): Promise<RuntimeState>
}

/** A node with its types forgotten, as the graph holds it. */
// biome-ignore lint/suspicious/noExplicitAny: which fields one node reads means nothing to the graph, which enforces them by name
export type AnyNode = NodeDefinition<any, any, any>

/**
 * Declares a node. One file `src/nodes/<name>.node.ts` with this as its default export is all it takes.
 *
 * @example
 * ```ts
 * import { defineNode } from 'mason-runtime'
 *
 * export default defineNode({
 *   name: 'tally',
 *   description: 'Counts the actions of the session so far',
 *   reads: ['action_history'],
 *   writes: [],
 *   next: ['planner'],
 *   run: (state, { checkpoint }) =>
 *     checkpoint({ summary: `${state.action_history.flat().length} actions so far`, next: ['planner'] }),
 * })
 * ```
 */
export const defineNode = <
  const Reads extends StateField,
  const Writes extends PatchField,
  const Needs extends ServiceName = DefaultNeed,
>(
  definition: Omit<NodeDefinition<Reads, Writes, Needs>, 'kind'>,
): NodeDefinition<Reads, Writes, Needs> => ({ kind: 'node', ...definition })

/**
 * Everything a tool has beside the state.
 *
 * @example
 * ```ts
 * import type { ToolContext } from 'mason-runtime'
 *
 * const say = ({ stream }: ToolContext<never, unknown>): void => stream('one moment …', 1)
 * ```
 */
export type ToolContext<Writes extends PatchField, Input, Needs extends ServiceName = never> = NodeContext<
  Writes,
  Needs
> & {
  /** The call being answered, found in the planner's action; of a step, `input` is the result before it. Null when it runs as prepare or output tool. */
  call: { index: number; id: string; input: Input } | null
}

/**
 * What a call does outside. `none`: a second execution costs nothing and changes nothing; `read`: it changes nothing; `write`: it may change
 * something, or asks a person, and keeps its place in the order.
 *
 * @example
 * ```ts
 * import type { ToolEffects } from 'mason-runtime'
 *
 * const effectsOf = ({ method }: { method: string }): ToolEffects => (method === 'GET' ? 'read' : 'write')
 * ```
 */
export type ToolEffects = 'none' | 'read' | 'write'

/**
 * Where the body of a call goes that is written as it is: a field of the tool's `input`, and the language of that text.
 *
 * @example
 * ```ts
 * import type { RawBody } from 'mason-runtime'
 *
 * const raw: RawBody = { field: 'code', language: 'python' }
 * ```
 */
export type RawBody = { field: string; language?: 'python' }

/**
 * A tool as its file declares it.
 *
 * @example
 * ```ts
 * import type { ToolDefinition } from 'mason-runtime'
 * import type { z } from 'zod'
 *
 * const nameOf = (tool: ToolDefinition<never, never, z.ZodType>): string => tool.name
 * ```
 */
export type ToolDefinition<
  Reads extends StateField,
  Writes extends PatchField,
  Schema extends z.ZodType,
  Needs extends ServiceName = never,
> = PartDefinition<Reads, Writes, Needs> & {
  kind: 'tool'
  /** Call tools: the server it belongs to in the XML dialogue, for example `search_tool_server`; left out: `mason_server`. */
  server?: string
  /** Call tools: a resource that one call at a time can use, such as a sandbox. The calls of a block that name it keep their order. */
  exclusive?: string
  /** Call tools: the field of `input` that takes a body that is no JSON in the XML dialogue, and the language it is in. */
  raw?: RawBody
  kinds: readonly ToolKind[]
  /**
   * The steps a call may go on with: tools of the kind `step`, one of which a `checkpoint` names in `next`. The call is answered
   * by the step that names none. The input of a step is the result of the action before it.
   */
  steps?: readonly string[]
  /** What a call of it does outside, or a function of its arguments that says so; `write` when left out. Reads run side by side. */
  effects?: ToolEffects | ((input: z.infer<Schema>) => ToolEffects)
  /** The same as `effects: 'none'`. */
  pure?: boolean
  /** Where what it answers comes from; `tool` when left out, which is not trusted. A result may say so itself. */
  provenance?: ProvenanceOrigin
  /** Call tools: false where it is not offered to the planner, unless the request names the tool. */
  isAvailable?(services: VisitServices<Needs>): boolean | Promise<boolean>
  input: Schema
  /** Prepare tools: true when there is nothing to do. Pure; costs no model call and leaves no action. */
  skip?(state: StateView<Reads>): boolean
  /** Prepare tools, asked where `skip` is false: whether the services have anything for it. */
  hasWork?(services: VisitServices<Needs>, state: StateView<Reads>): Promise<boolean>
  run(
    state: StateView<Reads>,
    context: ToolContext<Writes, z.infer<Schema>, Needs>,
    signal: AbortSignal,
  ): Promise<RuntimeState>
}

/** A tool with its types forgotten, as the graph holds it. */
// biome-ignore lint/suspicious/noExplicitAny: the types of one tool mean nothing to the graph, which checks input by schema
export type AnyTool = ToolDefinition<any, any, any, any>

/**
 * Declares a tool; every tool is a node of the graph. One file `src/tools/<name>.tool.ts` (or in a folder of
 * its family) with this as its default export is all it takes. A call tool's `checkpoint` leads to reflection, an
 * output tool's to end. The model reads `result.text`; `result.is_error: true` marks an error that the model can act
 * on, and an exception becomes such a result; `result.found` counts what a search found, and 0 marks that nothing was.
 *
 * @example
 * ```ts
 * import { defineTool } from 'mason-runtime'
 * import { z } from 'zod'
 *
 * export default defineTool({
 *   name: 'count_words',
 *   description: 'Counts the words of a text.',
 *   kinds: ['call'],
 *   pure: true,
 *   input: z.strictObject({ text: z.string() }),
 *   reads: [],
 *   writes: [],
 *   run(_state, { call, checkpoint }) {
 *     const words = call?.input.text.split(/\s+/).filter(Boolean).length ?? 0
 *     return checkpoint({ summary: `Counted ${words} words`, result: { text: `${words} words` } })
 *   },
 * })
 * ```
 */
export const defineTool = <
  const Reads extends StateField,
  const Writes extends PatchField,
  Schema extends z.ZodType,
  const Needs extends ServiceName = DefaultNeed,
>(
  definition: Omit<ToolDefinition<Reads, Writes, Schema, Needs>, 'kind'>,
): ToolDefinition<Reads, Writes, Schema, Needs> => ({ kind: 'tool', ...definition })
