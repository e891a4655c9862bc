import { setMaxListeners } from 'node:events'
import type { RunnableConfig } from '@langchain/core/runnables'
// the main entry would hook into every promise of the process, for tracing that is not wanted here
import { Annotation, Command, END, Send, START, StateGraph } from '@langchain/langgraph/web'
import { unlessAborted } from '../state/deadline.ts'
import type { VisitTarget } from './route.ts'

/** One visit, and the next targets; none where another branch decides, or where the walk ends. */
export type VisitStep<Walk> = (walk: Walk, target: VisitTarget) => Promise<readonly VisitTarget[]>

/** A node of LangGraph, and the nodes to which it may lead; without any it ends the walk. */
export type RouterNode = { name: string; ends: readonly string[] }

/** The nodes of LangGraph, and which of them makes a visit. */
export type RouterNodes = { nodes: readonly RouterNode[]; nodeOf(target: VisitTarget): string }

export type Router<Walk> = {
  /** Walks from some nodes on until no branch leads anywhere. An error of one branch, or the signal, ends the walk at once. */
  walk(walk: Walk, from: readonly VisitTarget[], signal: AbortSignal): Promise<void>
  /** The picture of the graph, as LangGraph draws it. */
  draw(): Promise<string>
}

/** What a task of LangGraph begins with: its target, and whether no other branch is under way beside it. */
type TaskInput = { target: VisitTarget; isAlone: boolean }

/**
 * The graph as a `StateGraph` of LangGraph, which routes and stores nothing: its state has no channel. A task visits a node and
 * those that follow it in a straight line; `Send` names what comes after a fan-out or a join. See docs/decisions/0277.
 */
export const createRouter = <Walk>({ nodes, nodeOf }: RouterNodes, step: VisitStep<Walk>): Router<Walk> => {
  const goTo = (targets: readonly VisitTarget[]): Command => {
    const isAlone = targets.length === 1
    return new Command({ goto: targets.map((target) => new Send(nodeOf(target), { target, isAlone })) })
  }
  const visitLine = async (
    { target, isAlone }: TaskInput,
    { configurable = {}, signal }: RunnableConfig,
  ): Promise<Command> => {
    if (!signal) throw new TypeError('LangGraph gave a task no signal')
    // all visits of a step share it
    setMaxListeners(0, signal)
    const visit = (to: VisitTarget) => {
      signal.throwIfAborted()
      return unlessAborted(step(configurable[walkKey], to), signal)
    }
    let at = target
    let next = await visit(at)
    // a lane goes on by itself too: LangGraph begins its next step once all tasks of this one have ended
    for (let [to] = next; to && next.length === 1 && (isAlone || isSameLane(at, to)); [to] = next) {
      at = to
      next = await visit(at)
    }
    return goTo(next)
  }

  const builder = new StateGraph(Annotation.Root({}), { nodes: nodes.map(({ name }) => name) })
  for (const { name, ends } of nodes)
    builder.addNode(name, visitLine, { ends: ends.length > 0 ? [...ends] : [END] })
  // a node to which none leads begins a walk; so may any other, since a walk begins where the run stands
  const targets = new Set(nodes.flatMap(({ ends }) => ends))
  for (const { name } of nodes) if (!targets.has(name)) builder.addEdge(START, name)
  const graph = builder.compile({ checkpointer: false })
  return {
    async walk(walk, from, signal) {
      if (from.length === 0) return
      await graph.invoke(goTo(from), {
        configurable: { [walkKey]: walk },
        recursionLimit: 1_000_000,
        maxConcurrency: maxBranches,
        // the one that streams only what a node asks for: nothing
        streamMode: 'custom',
        signal,
      })
    },
    draw: async () => (await graph.getGraphAsync()).drawMermaid({ withStyles: false }),
  }
}

/** Branches of a fan-out that are under way together: a thousand that start at once would block the event loop. */
const maxBranches = 100

const walkKey = 'mason_walk'

/** Whether a call leads to a call: its own next step, or the next of its lane. */
const isSameLane = (from: VisitTarget, to: VisitTarget): boolean => from.call !== null && to.call !== null
