import { type PlannedCall, plannedCalls } from '../state/calls.ts'
import type { ActionDraft } from '../state/checkpoint.ts'
import { isMasonError, MasonError } from '../state/errors.ts'
import type { Patch } from '../state/patch.ts'
import type { CallRef, Effect, PersonAnswer, Question } from '../state/ports.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { act } from './act.ts'
import { failureDraft, thrownDraft } from './fault-drafts.ts'
import type { LiveRun } from './live-run.ts'
import type { AnyNode, Context, GraphInfo } from './node.ts'
import { modelsWithin } from './scenario.ts'
import type { AnyTool, ToolContext } from './tool.ts'
import { checkNext, checkWrites, createView } from './view.ts'

/** What the graph injects into every node beside the run itself. */
export type Services = Pick<
  Context<never>,
  'models' | 'files' | 'blobs' | 'users' | 'memories' | 'clock' | 'log'
>

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
    const { scenario } = run
    const planned = callIndex === null ? null : findCall(run, callIndex)
    let laying: Promise<RuntimeState> | null = null
    let effect: Effect | null = null
    let asked = false

    const lay = async (draft: ActionDraft, patch: Patch): Promise<RuntimeState> => {
      checkWrites(part, patch)
      if (part.name === 'end') return run.finish(draft, patch, outcomeOf(run))
      const next = draft.next ?? nextOf(part, planned?.call ?? null, run.state)
      checkNext(part, next, info)
      return run.append(part.name, { ...noteCall(draft, planned?.call, part), next }, patch, effect)
    }
    const checkpoint = async (draft: ActionDraft, patch: Patch = {}): Promise<RuntimeState> => {
      if (laying) throw new MasonError('node_failed', `"${part.name}" laid a second action in one visit`)
      const state = lay(draft, patch)
      laying = state
      try {
        return await state
      } catch (error) {
        // nothing was laid: a fault may still be written down
        laying = null
        throw error
      }
    }

    const context: Context<never> & Pick<ToolContext<never, unknown>, 'call'> = {
      ...services,
      checkpoint,
      request: run.request,
      scenario,
      scenarios: run.scenarios,
      models: modelsWithin(services.models, scenario),
      run: run.claimed,
      graph: info,
      get outcome() {
        return outcomeOf(run)
      },
      call: null,
      stream: (text, attempt) => run.events.onText({ node: part.name, call: callIndex, attempt, text }),
      ask: (question) => askPerson(question),
      async effect(request) {
        if (effect)
          throw new MasonError('node_failed', `"${part.name}" asked for a second side effect in one call`)
        effect = await act(run.log, refOf(part, planned), request, asked ? null : askPerson, signal)
        return effect.response
      },
    }
    const askPerson = async (question: Question): Promise<PersonAnswer> => {
      const ref = refOf(part, planned)
      // answers are kept by call: a second question would be given the answer to the first
      if (asked) throw new MasonError('node_failed', `"${part.name}" asked a second question in one call`)
      asked = true
      const answer = await run.log.answerTo(ref)
      if (answer) return answer
      run.suspended.push({ call: ref, question })
      throw new Suspended()
    }

    try {
      if (planned && part.kind === 'tool')
        context.call = { ...planned.call, input: parseInput(part, planned.call) }
      await part.run(view(run.state) as RuntimeState, context as never, signal)
      if (laying) return await laying
      throw new MasonError('node_failed', `"${part.name}" returned without a checkpoint`, {
        remedy: 'every visit lays exactly one action: await context.checkpoint({ summary, … })',
      })
    } catch (error) {
      if (error instanceof Suspended) return run.state
      if (signal.aborted) throw signal.reason
      if (isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
      if (planned && !laying) return checkpoint(thrownDraft(part.name, error, effect))
      run.failedAt = part.name
      if (!laying && part.name !== 'end') await checkpoint(failureDraft(part.name, error), {}).catch(() => {})
      throw error
    }
  }
}

type FoundCall = { call: PlannedCall; ref: CallRef }

const findCall = (run: LiveRun, index: number): FoundCall => {
  const plan = run.actions.findLast((action) => plannedCalls(action).length > 0)
  const call = plan && plannedCalls(plan).find((candidate) => candidate.index === index)
  if (!plan || !call)
    throw new MasonError('internal', `no call ${index} stands in the plan of run ${run.claimed.run_id}`)
  return { call, ref: { plan_seq: plan.id, index } }
}

const refOf = (part: Part, planned: FoundCall | null): CallRef => {
  if (planned) return planned.ref
  throw new MasonError('node_failed', `"${part.name}" can ask and act only as the answer to a call`)
}

/** How it ends: as something decided, or else because it has its answer. */
export const outcomeOf = (run: LiveRun) =>
  run.outcome ?? ({ status: 'completed', reason: 'answered' } as const)

/** Which call it answers is the graph's to say, also where a tool has data of that name; and whose words it brings. */
const noteCall = (draft: ActionDraft, call: PlannedCall | undefined, part: Part): ActionDraft => {
  if (!call) return draft
  const provenance = draft.result?.provenance ?? (part.kind === 'tool' ? part.provenance : undefined)
  const label = provenance === undefined ? {} : { provenance }
  return { ...draft, result: { ...draft.result, ...label, call: { index: call.index, id: call.id } } }
}

const parseInput = (tool: AnyTool, call: PlannedCall): unknown => {
  const parsed = tool.input.safeParse(call.args)
  if (parsed.success) return parsed.data
  throw new MasonError('bad_tool_call', `the arguments of ${tool.name} do not check`)
}
