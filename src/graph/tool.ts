import type { z } from 'zod'
import type { Origin } from '../state/context/fence.ts'
import type { PatchField } from '../state/patch.ts'
import type { RuntimeState, StateField } from '../state/runtime-state.ts'
import type { Context, ToolKind, View } from './node.ts'

export type ToolContext<Writes extends PatchField, Input> = Context<Writes> & {
  /** The call being answered, found in the planner's action; null when it runs as prepare or output tool. */
  call: { index: number; id: string; input: Input } | null
}

export type Tool<Reads extends StateField, Writes extends PatchField, Schema extends z.ZodType> = {
  kind: 'tool'
  /** The name of the server it belongs to in the XML dialogue, e.g. `search_tool_server`. */
  server?: string
  name: string
  description: string
  kinds: readonly ToolKind[]
  /** True when running it again costs nothing and changes nothing. */
  pure?: boolean
  /** Where what it answers comes from; `tool` when left out, which is not trusted. A result may say so itself. */
  provenance?: Origin
  input: Schema
  reads: readonly Reads[]
  writes: readonly Writes[]
  /** Prepare tools: true when there is nothing to do. Pure; costs no model call and leaves no action. */
  skip?(state: View<Reads>): boolean
  /** Prepare tools, asked where `skip` is false: whether the services have anything for it. */
  hasWork?(services: Pick<Context<Writes>, 'memories' | 'models'>, state: View<Reads>): Promise<boolean>
  run(
    state: View<Reads>,
    context: ToolContext<Writes, z.infer<Schema>>,
    signal: AbortSignal,
  ): Promise<RuntimeState>
}

/** A tool with its types forgotten, as the graph holds it. */
// biome-ignore lint/suspicious/noExplicitAny: the types of one tool mean nothing to the graph, which checks input by schema
export type AnyTool = Tool<any, any, any>

/**
 * Declares a tool; every tool is a node of the graph. One file `src/tools/<name>.tool.ts` (or in a folder of
 * its family) with this as its default export is all it takes. A call tool's `checkpoint` leads to reflection,
 * an output tool's to end; a tool says what the model reads as `result.text`, and a fault the model can act
 * on as `result.is_error: true`. What it throws becomes such a fault.
 */
export const defineTool = <
  const Reads extends StateField,
  const Writes extends PatchField,
  Schema extends z.ZodType,
>(
  definition: Omit<Tool<Reads, Writes, Schema>, 'kind'>,
): Tool<Reads, Writes, Schema> => ({ kind: 'tool', ...definition })
