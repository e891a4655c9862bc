import { hash } from 'node:crypto'
import { readPlannedCalls } from '../state/calls.ts'
import { unlessAborted } from '../state/deadline.ts'
import { memoizeByObject } from '../state/memoize.ts'
import { openOnce } from '../state/open-once.ts'
import type { Services } from '../state/ports/services.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { findWaitEnd } from '../state/todos.ts'
import { type ReadonlyAction, turnTodos } from '../state/turn.ts'
import { createDefaultNext } from './default-next.ts'
import type { AnyTool, GraphInfo } from './definitions.ts'
import { describeParts, listRouterNodes } from './diagram.ts'
import type { GraphParts } from './graph-parts.ts'
import { findReachedCost, findReachedLimit } from './limits.ts'
import type { LiveRun } from './live-run.ts'
import { checkParts } from './load.ts'
import { findNextTargets, type VisitTarget } from './route.ts'
import type { VisitStep } from './router.ts'
import { createServiceView, createView } from './state-view.ts'
import { describeEffects } from './tool-effects.ts'
import { createVisit, type NodeVisit, tracedVisit } from './visit.ts'

/** What one walk through the graph carries beside the state. */
export type GraphRun = { run: LiveRun; services: Services; signal: AbortSignal }

/** The compiled graph: built once, walked by every run. */
export type Graph = GraphInfo & {
  parts: GraphParts
  /** The same for graphs of the same nodes, tools, edges and fields; noted on every run. */
  version: string
  /** Its nodes and tools, where each leads, and a picture. */
  describe(): Promise<{ nodes: ReturnType<typeof describeParts>; mermaid: string }>
  /** A node to be visited next that this graph does not have: another version began the run. Null: it has them all. */
  missing(run: LiveRun): string | null
  /** Walks from where the run stands until nothing is left to do in this process. */
  walk(walk: GraphRun): Promise<void>
  /**
   * Visits one node or tool alone: `end` when a walk stopped before it, `load-session` for a run that ends unbegun, any for a
   * prompt that is rebuilt. `call`: the index of the call that it answers.
   */
  visit(name: string, walk: GraphRun, call?: number | null): Promise<void>
}

/** Joins the parts: each visit is a step of the router, and `route` says from the actions alone where to go on. */
export const buildGraph = (parts: GraphParts, serviceNames: readonly string[]): Graph => {
  checkParts(parts, serviceNames)
  const info = describeGraph(parts, serviceNames)
  const nextOf = createDefaultNext(info)
  const visits = new Map<string, NodeVisit>()
  for (const part of [...parts.nodes, ...parts.tools])
    visits.set(part.name, tracedVisit(part, createVisit(part, info, nextOf)))

  const step: VisitStep<GraphRun> = async ({ run, services, signal }, { node, call }) => {
    const state = await visits.get(node)?.(run, call, services, signal)
    // a call that waits has no action: what comes next is not for it to say
    const isWaiting = call !== null && run.isCallWaiting(call)
    return state && !isWaiting ? findTargets(run, services, state, false) : []
  }
  // loaded by the first run: LangGraph is a tenth of a start, and a process without a worker never needs it
  const openRouter = openOnce(async () =>
    (await import('./router.ts')).createRouter(listRouterNodes(parts), step),
  )

  return {
    ...info,
    parts,
    version: hashParts(parts),
    describe: async () => ({ nodes: describeParts(parts), mermaid: await (await openRouter()).draw() }),
    missing: (run) => findNextTargets(run.actions, true).find(({ node }) => !visits.has(node))?.node ?? null,
    async walk(walk) {
      const { run, services, signal } = walk
      const from = await unlessAborted(findTargets(run, services, run.state, true), signal)
      await (await openRouter()).walk(walk, from, signal)
    },
    async visit(name, { run, services, signal }, call = null) {
      await visits.get(name)?.(run, call, services, signal)
    },
  }
}

const hashParts = ({ nodes, tools }: GraphParts): string => {
  const shape = [
    ...nodes.map(({ name, reads, writes, next }) => [name, reads, writes, next]),
    ...tools.map((tool) => [
      tool.name,
      tool.kinds,
      tool.reads,
      tool.writes,
      describeEffects(tool),
      ...(tool.steps ?? []),
    ]),
  ]
  return hash('sha256', JSON.stringify(shape)).slice(0, 12)
}

/**
 * Where to go after a visit. It looks at the state as that visit's own commit left it: of the branches of a fan-out
 * exactly one, the last to commit, sees all of them and goes on. Ends the run where a limit is reached; stops before the
 * planner while all that is left to do has to wait, and before calls whose task has to.
 */
const findTargets = async (
  run: LiveRun,
  { clock, models }: Services,
  state: RuntimeState,
  entering: boolean,
): Promise<VisitTarget[]> => {
  const actions = state.action_history[run.claimed.turn - 1] ?? []
  const last = actions.at(-1)
  const targets = run.outage === null ? findNextTargets(actions, entering) : []
  if (run.ended || targets.length === 0) return []
  if (targets.some(({ node }) => node === 'load-session' || node === 'end')) return targets
  const limits = run.request.limits ?? {}
  // with what is under way in other lanes
  const planned = findNextTargets(run.actions, true).length
  const reached =
    findReachedLimit(run.state, limits, planned, run.workedMs) ?? (await findReachedCost(models, limits))
  // another lane has come to a limit, perhaps meanwhile, and ends the run once this one is through
  if (run.outcome) return []
  run.outcome = reached
  if (reached) return [{ node: 'end', call: null }]
  const now = clock.now()
  run.waitsUntil =
    targets[0]?.node === 'planner'
      ? findWaitEnd(turnTodos(run.state), now)
      : readCallTime(last, now.getTime())
  return run.waitsUntil ? [] : targets
}

/** When the calls of a plan may be made, where that is later than now. */
const readCallTime = (plan: ReadonlyAction | undefined, now: number): Date | null => {
  const time = plan && readPlannedCalls(plan).length > 0 ? plan.result.not_before : null
  return typeof time === 'string' && Date.parse(time) > now ? new Date(time) : null
}

const describeGraph = ({ nodes, tools }: GraphParts, serviceNames: readonly string[]): GraphInfo => {
  const nodeNames = new Set(nodes.map((node) => node.name))
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const viewerFor = memoizeByObject((tool: AnyTool) => createView(tool))
  const serviceViewerFor = memoizeByObject((tool: AnyTool) => createServiceView(tool, serviceNames))
  const skips = (tool: AnyTool, state: RuntimeState): boolean =>
    tool.skip?.(viewerFor(tool)(state) as RuntimeState) ?? false
  return {
    tools,
    tool: (name) => byName.get(name),
    hasNode: (name) => nodeNames.has(name),
    skips,
    hasWork: async (tool, state, services) =>
      !skips(tool, state) &&
      (tool.hasWork === undefined ||
        (await tool.hasWork(serviceViewerFor(tool)(services), viewerFor(tool)(state) as RuntimeState))),
    isAvailable: async (tool, services) =>
      tool.isAvailable === undefined || (await tool.isAvailable(serviceViewerFor(tool)(services))),
    serviceNames,
  }
}
