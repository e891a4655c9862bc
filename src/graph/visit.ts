import { readWholeText } from '../context/result-text.ts'
import {
  type PlannedCall,
  readAnsweredCall,
  readOpenCall,
  readPlannedCalls,
  readResolvedHash,
  stopsOnFailure,
} from '../state/calls.ts'
import type { ActionDraft } from '../state/checkpoint.ts'
import { type ErrorCode, errorCodes, isMasonError, MasonError, toMasonError } from '../state/errors.ts'
import { readOutage } from '../state/outage.ts'
import type { AnswerReason, OngoingWork, Outcome } from '../state/outcome.ts'
import type { Patch } from '../state/patch.ts'
import type { Blobs } from '../state/ports/blobs.ts'
import type { EffectResult } from '../state/ports/effects.ts'
import type { Models } from '../state/ports/models.ts'
import type { PersonAnswer, Question } from '../state/ports/questions.ts'
import type { CallRef } from '../state/ports/run-log.ts'
import type { Services, VisitServices } from '../state/ports/services.ts'
import type { WaitOutcome } from '../state/ports/waits.ts'
import { type Json, type RuntimeState, usageSchema } from '../state/runtime-state.ts'
import { contentHash } from '../state/text/content-hash.ts'
import { cutText } from '../state/text/cut-text.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import { sendCallEffect } from './call-effect.ts'
import { createCallWaits, SuspendedError } from './call-waits.ts'
import type { AnyNode, AnyTool, GraphInfo, ToolContext } from './definitions.ts'
import type { LiveRun, Visit } from './live-run.ts'
import { NodeFailureError } from './node-failure.ts'
import { withPromptHash } from './prompt-hash.ts'
import { listUsedSteps, resolveArguments } from './references.ts'
import { checkRequest } from './requests.ts'
import { withScenarioModels } from './scenario-defaults.ts'
import { checkNext, checkWrites, createServiceView, createView } from './state-view.ts'
import { withUnfencedReplies } from './unfenced-models.ts'

/** The arguments that a call runs with, where results took the place of its references, and their hash. */
type ResolvedCall = { args: PlannedCall['args']; sha256: string }

/**
 * Resolves a call of a plan by the actions `since`, which answer the steps before it; null where it refers to no result. The same
 * in every process, for it is made of committed actions. Throws `bad_tool_call` where that makes no arguments.
 */
const resolveCall = async (
  tool: Pick<AnyTool, 'name' | 'input' | 'raw'>,
  call: PlannedCall,
  { plan, since }: { plan: ReadonlyAction; since: readonly ReadonlyAction[] },
  blobs: Pick<Blobs, 'read'>,
): Promise<ResolvedCall | null> => {
  const steps = stopsOnFailure(plan) ? listUsedSteps(tool, call) : []
  if (steps.length === 0) return null
  const texts = new Map<number, string>()
  for (const step of steps) {
    const answer = since.find((action) => readAnsweredCall(action)?.index === step)
    const text = answer ? await readWholeText(answer, blobs) : null
    if (text === null)
      throw new MasonError('bad_tool_call', `the result of step ${step} is gone`, {
        remedy: 'make its call again',
      })
    texts.set(step, text)
  }
  const args = resolveArguments(tool, call, (step) => texts.get(step) ?? '')
  return { args, sha256: contentHash(args) }
}

/** One visit of one node: view of the state in, exactly one action out. */
export type NodeVisit = (
  run: LiveRun,
  call: number | null,
  services: Services,
  signal: AbortSignal,
) => Promise<RuntimeState>

/** The same within a visit that was begun. */
type BegunVisit = (visit: Visit, ...about: Parameters<NodeVisit>) => ReturnType<NodeVisit>

type Part = AnyNode | AnyTool

/** Makes the visits of one node or tool. `nextOf` gives where it leads when it does not say so itself. */
export const createVisit = (
  part: Part,
  info: GraphInfo,
  nextOf: (part: Part, call: PlannedCall | null, state: RuntimeState) => string[],
): BegunVisit => {
  const view = createView(part)
  const viewServices = createServiceView(part, info.serviceNames)
  return async (visit, run, callIndex, services, signal) => {
    signal.throwIfAborted()
    const { scenario } = run
    const planned = callIndex === null ? null : findCall(run, callIndex)
    let committing: Promise<RuntimeState> | null = null
    let effect: EffectResult | null = null
    let asked = false
    let resolvedHash: string | null = null

    const append = async (draft: ActionDraft, patch: Patch): Promise<RuntimeState> => {
      checkWrites(part, patch)
      await visit.permit.renew()
      // the run ends without what a stopped visit had not begun to commit, unless its side effect took place
      if (!effect) signal.throwIfAborted()
      if (part.name === 'end') return run.finish(visit, draft, patch, currentOutcome(run))
      const next = draft.next ?? nextOf(part, planned?.call ?? null, run.state)
      checkNext(part, next, info)
      return run.append(
        visit,
        part.name,
        { ...withCall({ ...draft, next }, planned?.call, part, resolvedHash), next },
        patch,
        effect,
      )
    }
    const checkpoint = async (draft: ActionDraft, patch: Patch = {}): Promise<RuntimeState> => {
      if (committing)
        throw new MasonError('node_failed', `"${part.name}" called checkpoint() twice in one visit`)
      checkRequest('checkpoint', draft)
      committing = append(draft, patch)
      try {
        return await committing
      } catch (error) {
        // nothing was committed: an error can still be recorded
        committing = null
        throw error
      }
    }

    const { waitAll, waitForOperator } = createCallWaits(run, () => toCallRef(part, planned), signal)
    const sentModels = withPromptHash(services.models, (sha256) => {
      visit.promptSha256 = sha256
    })
    const waitingModels: Models = {
      ...sentModels,
      call: (request, abort) =>
        visit.permit.without(() => sentModels.call({ ...request, timeLeftMs: run.timeLeftMs }, abort)),
    }
    const ownServices = {
      ...services,
      models: withScenarioModels(withUnfencedReplies(waitingModels), scenario),
    }
    const context = Object.assign(viewServices(ownServices), {
      checkpoint,
      request: run.request,
      scenario,
      scenarios: run.scenarios,
      run: run.claimed,
      workedMs: () => Math.round(run.workedMs),
      graph: info,
      hasWork: (tool, state) => info.hasWork(tool, state, ownServices),
      isAvailable: (tool) => run.isAvailable(tool.name, () => info.isAvailable(tool, ownServices)),
      outcome: currentOutcome(run),
      ongoing: part.name === 'end' ? await closeWaits(run) : {},
      wait: async (request) => (await waitAll([request]))[0] as WaitOutcome,
      waitAll,
      call: null as ToolContext<never, unknown>['call'],
      stream: (text, attempt) => run.events.onText({ node: part.name, call: callIndex, attempt, text }),
      ask: (question) => askPerson(question),
      async effect(request) {
        if (effect)
          throw new MasonError('node_failed', `"${part.name}" requested a second side effect in one call`)
        checkRequest('effect', request)
        effect = await sendCallEffect(run.log, toCallRef(part, planned), request, waitForOperator, signal)
        return effect.response
      },
    } satisfies Omit<ToolContext<never, unknown>, keyof VisitServices<never>>)
    const askPerson = async (question: Question): Promise<PersonAnswer> => {
      const ref = toCallRef(part, planned)
      // answers are kept by call: a second question would be given the answer to the first
      if (asked) throw new MasonError('node_failed', `"${part.name}" asked a second question in one call`)
      checkRequest('ask', question)
      asked = true
      const answer = await run.log.readAnswer(ref, question)
      if (answer) return answer
      run.openQuestions.push({ call: ref, question })
      throw new SuspendedError()
    }

    try {
      if (planned && part.kind === 'tool') {
        const tool = info.tool(planned.call.tool) ?? part
        const resolved = await resolveCall(tool, planned.call, planned, services.blobs)
        const args = planned.before?.result ?? resolved?.args ?? planned.call.args
        const noted = planned.before && readResolvedHash(planned.before)
        resolvedHash = resolved?.sha256 ?? null
        if (planned.before && noted !== resolvedHash) throw new ResolvedOtherwiseError(planned.call)
        context.call = { ...planned.call, input: parseInput(part, args) }
      }
      await part.run(view(run.state) as RuntimeState, context as never, signal)
      if (committing) return await committing
      throw new MasonError('node_failed', `"${part.name}" returned without a checkpoint`, {
        remedy: 'append exactly one action in every visit: await context.checkpoint({ summary, … })',
      })
    } catch (error) {
      if (error instanceof SuspendedError) return run.state
      if (signal.aborted) throw signal.reason
      if (isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
      if (planned && !committing && !(error instanceof ResolvedOtherwiseError))
        return checkpoint(toolErrorDraft(part.name, error, effect))
      const outage = committing ? null : readOutage(part.name, error)
      if (outage) {
        run.outage = outage
        return run.state
      }
      run.failedAt = part.name
      if (!committing && part.name !== 'end')
        await checkpoint(nodeErrorDraft(part.name, error), {}).catch(() => {})
      throw error
    }
  }
}

/**
 * A call of a plan and the actions since. The input of a step is the result of the action `before` it, whose id names its waits
 * and questions.
 */
type CallMatch = {
  call: PlannedCall
  ref: CallRef
  plan: ReadonlyAction
  since: readonly ReadonlyAction[]
  before: ReadonlyAction | undefined
}

const findCall = (run: LiveRun, index: number): CallMatch => {
  const at = run.actions.findLastIndex((action) => readPlannedCalls(action).length > 0)
  const plan = run.actions[at]
  const call = plan && readPlannedCalls(plan).find((candidate) => candidate.index === index)
  if (!plan || !call)
    throw new MasonError('internal', `there is no call ${index} in the plan of run ${run.claimed.run_id}`)
  const since = run.actions.slice(at + 1)
  const before = since.findLast((action) => readOpenCall(action) === index)
  return { call, ref: { plan_seq: (before ?? plan).id, index }, plan, since, before }
}

/** A call that is open already was begun with other arguments: its run fails. */
class ResolvedOtherwiseError extends MasonError {
  constructor({ index, tool }: PlannedCall) {
    super('internal', `call ${index} of ${tool} was begun with other results in its arguments`, {
      remedy: 'submit the run again; if that repeats, report it with the id of the run',
    })
  }
}

const toCallRef = (part: Part, planned: CallMatch | null): CallRef => {
  if (planned) return planned.ref
  throw new MasonError('node_failed', `"${part.name}" can ask and act only as the answer to a call`)
}

/** Of a run that ends before its answer, whose calls may still wait: what goes on. */
const closeWaits = async (run: LiveRun): Promise<OngoingWork> => (run.outcome ? run.log.closeWaits() : {})

/** How it ends: as something decided, or else because it has its answer. */
export const currentOutcome = ({ outcome, actions }: LiveRun): Outcome =>
  outcome ?? { status: 'completed', reason: readAnswerReason(actions) }

/** How the reply ended that the answer rests on. */
const readAnswerReason = (actions: LiveRun['actions']): AnswerReason => {
  const finish = actions.findLast(({ node }) => node === 'planner')?.result.finish
  return finish === 'length' || finish === 'content_filter' || finish === 'unknown' ? finish : 'answered'
}

/** Which call it answers or leaves open is the graph's to say, also where a tool has data of that name; and whose words it brings. */
const withCall = (
  draft: ActionDraft,
  call: PlannedCall | undefined,
  part: Part,
  resolved_sha256: string | null,
): ActionDraft => {
  if (!call) return draft
  const declared = part.kind === 'tool' ? part.provenance : undefined
  const claimed = draft.result?.provenance ?? declared
  // the data of a tool may name any origin, but only its definition one that is trusted
  const provenance = claimed === 'user' && declared !== 'user' ? 'tool' : claimed
  const label = provenance === undefined ? {} : { provenance }
  const open = part.kind === 'tool' && draft.next?.some((step) => part.steps?.includes(step)) === true
  const resolved = resolved_sha256 === null ? {} : { resolved_sha256 }
  const mark = { index: call.index, id: call.id, ...(open && { open }), ...resolved }
  return { ...draft, result: { ...draft.result, ...label, call: mark } }
}

const parseInput = (tool: AnyTool, args: unknown): unknown => {
  const parsed = tool.input.safeParse(args)
  if (parsed.success) return parsed.data
  throw new MasonError('bad_tool_call', `the arguments of ${tool.name} are invalid`)
}

/** Begins the visits, each a span of the run's tracer. */
export const tracedVisit =
  ({ name, kind }: Pick<AnyNode | AnyTool, 'name' | 'kind'>, visit: BegunVisit): NodeVisit =>
  async (run, call, services, signal) => {
    const permit = await run.permit(signal)
    const begun = run.openVisit(permit)
    const work = run.tracer.visit({ id: begun.id, name, kind, call }, async (note) => {
      const self = { id: begun.id, tool: kind === 'tool' ? name : null }
      const state = await visit(begun, run, call, run.servicesFor(services, self), signal)
      const isWaiting = call !== null && run.isCallWaiting(call)
      const outage = run.outage?.node === name ? run.outage : null
      // a visit's state ends with its own action
      const action = isWaiting || outage ? undefined : state.action_history[run.claimed.turn - 1]?.at(-1)
      note({
        action_id: action?.id ?? null,
        code: action ? readErrorCode(action) : (outage?.code ?? null),
        isWaiting,
      })
      return state
    })
    return work.finally(permit.end)
  }

const knownErrorCodes: ReadonlySet<unknown> = new Set(errorCodes)
const isCode = (value: unknown): value is ErrorCode => knownErrorCodes.has(value)

/** The code of the error in an action of a tool or a node. */
const readErrorCode = ({ result }: Pick<ReadonlyAction, 'result'>): ErrorCode | null => {
  if (result.is_error === true) return isCode(result.code) ? result.code : 'node_failed'
  const { error } = result
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null
  return isCode(code) ? code : null
}

const maxSummary = 500

/**
 * A tool's error is a result the model can act on, not the end of the run. Where its side effect took place all the same
 * the model must know, or it would request a second one.
 */
const toolErrorDraft = (name: string, error: unknown, effect: EffectResult | null): ActionDraft => {
  const { message, code, remedy } = toMasonError(error, 'node_failed')
  const text = `Error: ${remedy ? `${message}; ${remedy}` : message}`
  const done = effect
    ? `\nThe side effect took place all the same; do not repeat it. The provider answered: ${effect.response}`
    : ''
  return {
    summary: cutText(`${name} failed: ${message}`, maxSummary),
    result: { text: text + done, is_error: true, code },
    relevance: 0,
  }
}

/** What a node that failed leaves behind: the reason, and the tokens it had spent. */
const nodeErrorDraft = (name: string, error: unknown): ActionDraft => {
  const { message, code, remedy, detail } = toMasonError(error, 'node_failed')
  const usage = usageSchema.safeParse((detail as { usage?: unknown } | undefined)?.usage)
  return {
    summary: cutText(`${name} failed: ${message}`, maxSummary),
    result: {
      ...(error instanceof NodeFailureError && error.result),
      error: {
        code,
        message,
        ...(remedy && { remedy }),
        ...(detail !== undefined && { detail: detail as Json }),
      },
    },
    ...(usage.success && { usage: usage.data }),
    relevance: 0,
    next: ['end'],
  }
}
