import type { ActionDraft } from '../state/checkpoint.ts'
import type { Patch, PatchField } from '../state/patch.ts'
import type {
  Blobs,
  Clock,
  EffectRequest,
  Files,
  Log,
  Memories,
  Models,
  Outcome,
  PersonAnswer,
  Question,
  Users,
} from '../state/ports.ts'
import type { Scenario, Scenarios } from '../state/registry/scenario.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import type { RuntimeState, StateField } from '../state/runtime-state.ts'
import type { AnyTool } from './tool.ts'

/** The state as a node sees it: the fields it declares. Reading any other throws, naming the field. */
export type View<Reads extends StateField> = Pick<RuntimeState, Reads>

export type PatchOf<Writes extends PatchField> = Pick<Patch, Writes>

export type ToolKind = 'prepare' | 'call' | 'output'

/** Everything a node is given beside the state. */
export type Context<Writes extends PatchField> = {
  /**
   * Commits the node's one action and the fields it changed; resolves with the state that holds them.
   * The node returns what it resolves to. Throws `lease_lost` when another worker has the run.
   */
  checkpoint(draft: ActionDraft, patch?: PatchOf<Writes>): Promise<RuntimeState>
  /** What was asked for: the job as it was admitted, with what its scenario says where it says nothing itself. */
  request: AdmittedRequest
  /** The row of the state's scenario; null where it is free text, or none. */
  scenario: Scenario | null
  scenarios: Scenarios
  run: { run_id: string; session_id: string; business_id: string; user_id: string; turn: number }
  models: Models
  files: Files
  blobs: Blobs
  users: Users
  memories: Memories
  clock: Clock
  log: Log
  /** Shows streamed text to whoever follows the run; best effort. A new `attempt` voids what came before. */
  stream(text: string, attempt: number): void
  /** Asks a person and gives the answer; parks the run until there is one. Once in a call. */
  ask(question: Question): Promise<PersonAnswer>
  /** Does a side effect exactly once as far as its provider allows; see the effect ledger. */
  effect(request: EffectRequest): Promise<string>
  /** What stands in the graph. */
  graph: GraphInfo
  /** How the run ends; for `end` only. */
  outcome: Outcome
}

/** What nodes may know of the graph they stand in. */
export type GraphInfo = {
  tools: readonly AnyTool[]
  tool(name: string): AnyTool | undefined
  hasNode(name: string): boolean
  /** Whether a prepare tool has nothing to do in this state. */
  skips(tool: AnyTool, state: RuntimeState): boolean
}

export type Node<Reads extends StateField, Writes extends PatchField> = {
  kind: 'node'
  name: string
  description: string
  reads: readonly Reads[]
  writes: readonly Writes[]
  /** Where it may lead, for the picture and the check: node names, or all tools of a kind. */
  next: readonly (string | { tools: ToolKind })[]
  run(state: View<Reads>, context: Context<Writes>, signal: AbortSignal): Promise<RuntimeState>
}

/** A node with its types forgotten, as the graph holds it. */
// biome-ignore lint/suspicious/noExplicitAny: which fields one node reads means nothing to the graph, which enforces them by name
export type AnyNode = Node<any, any>

/** Declares a node. One file `src/nodes/<name>.node.ts` with this as its default export is all it takes. */
export const defineNode = <const Reads extends StateField, const Writes extends PatchField>(
  definition: Omit<Node<Reads, Writes>, 'kind'>,
): Node<Reads, Writes> => ({ kind: 'node', ...definition })
