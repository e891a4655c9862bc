import { z } from 'zod'
import { loadAllParts } from '../../src/app/load-all-parts.ts'
import { buildGraph, type Graph } from '../../src/graph/build.ts'
import type { AnyNode } from '../../src/graph/definitions.ts'
import { type AnyTool, defineTool, type ToolContext } from '../../src/graph/definitions.ts'
import type { Json } from '../../src/state/runtime-state.ts'
import { listNeededServices } from './services.ts'

/** The project's own nodes and tools, with tools of a test beside them or in place of those of the same name. */
export const graphWith = async (
  tools: readonly AnyTool[] = [],
  nodes: readonly AnyNode[] = [],
): Promise<Graph> => {
  const parts = await loadAllParts()
  const others = <Part extends { name: string }>(
    own: readonly Part[],
    added: readonly { name: string }[],
  ): Part[] => own.filter((part) => !added.some(({ name }) => name === part.name))
  const all = {
    nodes: [...others(parts.nodes, nodes), ...nodes],
    tools: [...others(parts.tools, tools), ...tools],
  }
  return buildGraph(all, listNeededServices(all))
}

type Args = Record<string, Json>
type Work = (args: Args, context: ToolContext<never, Args>, signal: AbortSignal) => Promise<string> | string

/** A call tool that takes any arguments and answers with what `work` gives. */
export const callTool = (name: string, work: Work, pure = true): AnyTool =>
  defineTool({
    name,
    description: name,
    kinds: ['call'],
    pure,
    input: z.record(z.string(), z.json()),
    reads: [],
    writes: [],
    async run(_state, context, signal) {
      const text = await work(context.call?.input ?? {}, context, signal)
      return context.checkpoint({ summary: `${name} answered`, result: { text } })
    },
  })
