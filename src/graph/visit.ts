import type { z } from 'zod'
import { type PlannedCall, plannedCalls } from '../state/calls.ts'
import type { ActionDraft } from '../state/checkpoint.ts'
import { isMasonError, MasonError, toMasonError } from '../state/errors.ts'
import type { Patch } from '../state/patch.ts'
import type { Blobs, CallRef, Clock, Effect, Files, Log, Models, Users } from '../state/ports.ts'
import { type RuntimeState, usageSchema } from '../state/runtime-state.ts'
import type { LiveRun } from './live-run.ts'
import type { AnyNode, Context, GraphInfo } from './node.ts'
import type { AnyTool, ToolContext } from './tool.ts'
import { checkWrites, createView } from './view.ts'

/** What the graph injects into every node beside the run itself. */
export type Services = { models: Models; files: Files; blobs: Blobs; users: Users; clock: Clock; log: Log }

/** Thrown inside a tool that waits for a person; the visit ends without an action and the run is parked. */
class Suspended extends Error {}

/** One visit of one node: view of the state in, exactly one action out. */
export type Visit = (
  run: LiveRun,
  call: number | null,
  services: Services,
  signal: AbortSignal,
) => Promise<RuntimeState>

type Part = AnyNode | AnyTool

/** Makes the visits of one node or tool. `nextOf` gives where it leads when it does not say so itself. */
export const createVisit = (
  part: Part,
  info: GraphInfo,
  nextOf: (part: Part, call: PlannedCall | null, state: RuntimeState) => string[],
): Visit => {
  const view = createView(part)
  return async (run, callIndex, services, signal) => {
    signal.throwIfAborted()
    const planned = callIndex === null ? null : findCall(run, callIndex)
    let laid: RuntimeState | null = null
    let effect: Effect | null = null

    const checkpoint = async (draft: ActionDraft, patch: Patch = {}): Promise<RuntimeState> => {
      if (laid) throw new MasonError('node_failed', `"${part.name}" laid a second action in one visit`)
      checkWrites(part, patch)
      if (part.name === 'end') laid = await run.finish(draft, patch, outcomeOf(run))
      else {
        const next = draft.next ?? nextOf(part, planned?.call ?? null, run.state)
        laid = await run.append(part.name, { ...noteCall(draft, planned?.call), next }, patch, effect)
      }
      return laid
    }

    const context: Context<never> & Pick<ToolContext<never, unknown>, 'call'> = {
      ...services,
      checkpoint,
      request: run.claimed.request,
      run: run.claimed,
      graph: info,
      get outcome() {
        return outcomeOf(run)
      },
      call: null,
      stream: (text, attempt) => run.events.onText({ node: part.name, call: callIndex, attempt, text }),
      async ask(question) {
        const ref = refOf(part, planned)
        const answer = await run.log.answerTo(ref)
        if (answer) return answer
        run.suspended.push({ call: ref, question })
        throw new Suspended()
      },
      async effect(request) {
        effect = await run.log.effect(refOf(part, planned), request, signal)
        return effect.response
      },
    }

    try {
      if (planned && part.kind === 'tool')
        context.call = { ...planned.call, input: parseInput(part, planned.call) }
      await part.run(view(run.state) as RuntimeState, context as never, signal)
    } catch (error) {
      if (error instanceof Suspended) return run.state
      if (signal.aborted) throw signal.reason
      if (isMasonError(error, 'lease_lost')) throw error
      if (laid) {
        run.failedAt = part.name
        throw error
      }
      if (planned) return checkpoint(faultDraft(part.name, error))
      run.failedAt = part.name
      await checkpoint(failureDraft(part.name, error)).catch(() => {})
      throw error
    }
    if (!laid)
      throw new MasonError('node_failed', `"${part.name}" returned without a checkpoint`, {
        remedy: 'every visit lays exactly one action: await context.checkpoint({ summary, … })',
      })
    return laid
  }
}

type FoundCall = { call: PlannedCall; ref: CallRef }

const findCall = (run: LiveRun, index: number): FoundCall => {
  const plan = run.actions.findLast((action) => action.result.calls !== undefined)
  const call = plan && plannedCalls(plan).find((candidate) => candidate.index === index)
  if (!plan || !call)
    throw new MasonError('internal', `no call ${index} stands in the plan of run ${run.claimed.run_id}`)
  return { call, ref: { plan_seq: plan.id, index } }
}

const refOf = (part: Part, planned: FoundCall | null): CallRef => {
  if (planned) return planned.ref
  throw new MasonError('node_failed', `"${part.name}" can ask and act only as the answer to a call`)
}

const outcomeOf = (run: LiveRun) => run.outcome ?? ({ status: 'completed', reason: 'answered' } as const)

const noteCall = (draft: ActionDraft, call: PlannedCall | undefined): ActionDraft =>
  call ? { ...draft, result: { call: { index: call.index, id: call.id }, ...draft.result } } : draft

const parseInput = (tool: AnyTool, call: PlannedCall): unknown => {
  const parsed = (tool.input as z.ZodType).safeParse(call.args)
  if (parsed.success) return parsed.data
  throw new MasonError('bad_tool_call', `the arguments of ${tool.name} do not check`)
}

/** A tool's fault is a result the model can act on, not the end of the run. */
const faultDraft = (name: string, error: unknown): ActionDraft => {
  const { message, code } = toMasonError(error, 'node_failed')
  const text = `Error: ${message}`
  return {
    summary: `${name} failed: ${message}`.slice(0, 500),
    result: { text, is_error: true, code },
    relevance: 0,
  }
}

/** What a node that failed leaves behind: the reason, and the tokens it had spent. */
const failureDraft = (name: string, error: unknown): ActionDraft => {
  const { message, code, remedy, detail } = toMasonError(error, 'node_failed')
  const usage = usageSchema.safeParse((detail as { usage?: unknown } | undefined)?.usage)
  return {
    summary: `${name} failed: ${message}`.slice(0, 500),
    result: { error: { code, message, ...(remedy && { remedy }) } },
    ...(usage.success && { usage: usage.data }),
    relevance: 0,
    next: ['end'],
  }
}
