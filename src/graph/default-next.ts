import type { PlannedCall } from '../state/calls.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { findTurnAction, turnActions } from '../state/turn.ts'
import type { AnyNode, AnyTool, DeclaredTarget, GraphInfo, ToolKind } from './definitions.ts'

/** The prepare tool that runs after all others of its kind, when it has work. */
export const lastPrepareTool = 'understand'
/** The prepare tool that runs after `understand` where that has work, since it searches by the goal. */
export const recallTool = 'recall-memory'

/** Where tools of a kind lead; the graph follows it, and its picture is drawn from it. */
export const defaultNext = {
  prepare: [lastPrepareTool, 'planner'],
  call: ['reflection'],
  step: ['reflection'],
  output: ['end'],
} as const satisfies Record<ToolKind, readonly string[]>

/** Where a part may lead, whether at once or not. */
export const listNextTargets = (part: AnyNode | AnyTool): readonly (string | { tools: ToolKind })[] =>
  part.kind === 'node'
    ? part.next.flatMap((entry: DeclaredTarget): readonly (string | { tools: ToolKind })[] =>
        typeof entry === 'object' && 'one' in entry ? entry.one : [entry],
      )
    : part.name === lastPrepareTool
      ? [recallTool, 'planner']
      : [...part.kinds.flatMap((kind) => defaultNext[kind]), ...(part.steps ?? [])]

/** Where a turn goes on that is prepared: at `understand`, or past it where that has nothing to do. */
export const chooseAnalysis = (info: GraphInfo, state: RuntimeState): string => {
  const understand = info.tool(lastPrepareTool)
  return understand && !info.skips(understand, state) ? understand.name : 'planner'
}

/**
 * Where a part leads that does not say so itself. A prepare tool passes by `understand` when that has nothing to do, and after it
 * leads where `understand` says that the turn begins.
 */
export const createDefaultNext =
  (info: GraphInfo) =>
  (part: AnyNode | AnyTool, call: PlannedCall | null, state: RuntimeState): string[] => {
    if (part.kind === 'node') return []
    if (call) return [...defaultNext.call]
    if (part.name === lastPrepareTool) return ['planner']
    if (!isPreparing(part, state)) return [...defaultNext.output]
    const analysis = findTurnAction(state, lastPrepareTool)
    if (analysis) return [typeof analysis.result.start === 'string' ? analysis.result.start : 'planner']
    return [chooseAnalysis(info, state)]
  }

/** A tool of both kinds prepares until the planner has been heard, and makes the answer after it. */
const isPreparing = ({ kinds }: AnyTool, state: RuntimeState): boolean =>
  kinds.includes('prepare') &&
  !(kinds.includes('output') && turnActions(state).some((action) => action.node === 'planner'))
