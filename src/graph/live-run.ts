import { type ActionDraft, prepareAction } from '../state/checkpoint.ts'
import { MasonError } from '../state/errors.ts'
import { applyAction } from '../state/fold.ts'
import type { Outage } from '../state/outage.ts'
import type { Outcome } from '../state/outcome.ts'
import { listOutputErrors } from '../state/output-fields.ts'
import type { Patch } from '../state/patch.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { EffectResult } from '../state/ports/effects.ts'
import type { CallRef, LogEntry, OpenQuestion, RunLog, RunResult } from '../state/ports/run-log.ts'
import type { Services } from '../state/ports/services.ts'
import { noTracer, type Tracer, type VisitNote } from '../state/ports/tracer.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import type { Json, RuntimeState } from '../state/runtime-state.ts'
import type { Scenario, Scenarios } from '../state/scenario.ts'
import { countTodos, listOpenTodos } from '../state/todos.ts'
import { type ReadonlyAction, turnGoal, turnTodos } from '../state/turn.ts'
import { defaultLimits } from './limits.ts'
import { findScenario, noScenarios, withScenario } from './scenario-defaults.ts'

/** A claimed run as the processor is handed it. */
export type ClaimedRun = {
  run_id: string
  session_id: string
  business_id: string
  user_id: string
  turn: number
  next_seq: number
  worked_ms: number
  request: AdmittedRequest
  /** Folded from the rows of the session. */
  state: RuntimeState
}

/** What a run in progress reports to its followers. */
export type RunEvents = {
  /** After each commit. */
  onAction(seq: number): void
  onText(delta: { node: string; call: number | null; attempt: number; text: string }): void
}

/** The permit of one visit to work. Waiting costs none. */
export type VisitPermit = {
  /** Gives the permit back until `wait` has ended. */
  without<T>(wait: () => Promise<T>): Promise<T>
  /** Takes it again where the visit lost it because it took long. */
  renew(): Promise<void>
  end(): void
}

const freePermit: VisitPermit = { without: (wait) => wait(), async renew() {}, end() {} }

/**
 * One visit: the id under which it calls models, when it began, in milliseconds of the monotonic clock, and the hash of the
 * messages that it sent to a model first; null where it sent none.
 */
export type Visit = { id: string; beganAtMs: number; promptSha256: string | null; permit: VisitPermit }

type LiveRunOptions = {
  log: RunLog
  clock: Clock
  events: RunEvents
  /** Ids of visits, and of attempts to append. */
  newId: () => string
  /** The current ones: a changed row counts from the next visit on. */
  scenarios?: Scenarios
  tracer?: Tracer
  /** The services of one visit; absent: those of the run. */
  servicesFor?: (services: Services, visit: VisitNote) => Services
  /** Waits until a visit may work; absent: it may at once. */
  permit?: (signal: AbortSignal) => Promise<VisitPermit>
}

/** How long it counts which tools can be used, as long as other changes by an admin may take. */
const availabilityMs = 1000

/** See `createLiveRun`. */
export type LiveRun = ReturnType<typeof createLiveRun>

/**
 * One run being worked on in this process: the state it holds, and the one queue through which its branches append.
 * The queue owns `next_seq`; the state changes only after a commit, through the same fold that re-reads it.
 */
export const createLiveRun = (
  claimed: ClaimedRun,
  { permit = async () => freePermit, scenarios = noScenarios, tracer = noTracer, ...options }: LiveRunOptions,
) => {
  const { log, clock, events, newId, servicesFor = (services: Services) => services } = options
  const startedAt = clock.monotonicMs()
  let { state, next_seq: seq } = claimed
  let tail: Promise<unknown> = Promise.resolve()
  const availability = new Map<string, { at: number; answer: Promise<boolean> }>()

  /** Branches come in turn, in the order they ask. */
  const commitInTurn = (
    { id, beganAtMs, promptSha256 }: Visit,
    node: string,
    draft: ActionDraft & { next: string[] },
    patch: Patch,
    commit: (entry: LogEntry, committed: Patch) => Promise<void>,
  ): Promise<RuntimeState> => {
    const turn = tail.then(async () => {
      if (run.ended) throw new MasonError('lease_lost', 'this run has ended')
      const prepared = await prepareAction(node, draft, patch, (bytes) => log.storeBlob(bytes))
      const entry = {
        seq,
        attempt_id: newId(),
        visit: { id, ms: clock.monotonicMs() - beganAtMs, prompt_sha256: promptSha256 },
        body: prepared.bodyText,
        patch: prepared.patchText,
        usage: prepared.body.usage,
        worked_ms: run.workedMs,
        effect: null,
      }
      await commit(entry, prepared.patch)
      seq++
      state = applyAction(state, { seq: entry.seq, turn: claimed.turn, ...prepared })
      events.onAction(entry.seq)
      return state
    })
    tail = turn.catch(() => {})
    return turn
  }

  const toResult = ({ chat_history }: Patch, outcome: Outcome): RunResult => ({
    answer: chat_history?.findLast((message) => message.role === 'assistant')?.content ?? null,
    output_structure: state.output_structure as unknown as Json,
    error: outcome.status === 'failed' ? (outcome.error as Json) : null,
    goal: turnGoal(state),
    todos: countTodos(turnTodos(state)),
    open_todos: listOpenTodos(turnTodos(state)),
    output_errors: listOutputErrors(run.actions, state.output_structure, outcome),
  })

  const run = {
    claimed,
    log,
    events,
    tracer,
    scenarios,
    /** Questions that branches of the current fan-out wait on. */
    openQuestions: [] as OpenQuestion[],
    /** Calls of the current fan-out that wait for something else than a person. */
    waitingCalls: [] as CallRef[],
    /** Whether branches of the current fan-out wait, for whatever. */
    get isWaiting(): boolean {
      return run.openQuestions.length > 0 || run.waitingCalls.length > 0
    },
    /** Whether the call of this index waits. */
    isCallWaiting(index: number): boolean {
      return [...run.openQuestions.map(({ call }) => call), ...run.waitingCalls].some(
        (call) => call.index === index,
      )
    },
    /** Until when everything that is left to do has to wait, or null. */
    waitsUntil: null as Date | null,
    /** A visit that no model could serve, or null: the run waits until one may. */
    outage: null as Outage | null,
    /** The node whose error ended the walk. */
    failedAt: null as string | null,
    /** Set once it is known how the run ends. */
    outcome: null as Outcome | null,
    ended: false,
    get state(): RuntimeState {
      return state
    },
    /** The actions of this run's turn; none before `load-session` has opened it. */
    get actions(): readonly ReadonlyAction[] {
      return state.action_history[claimed.turn - 1] ?? []
    },
    get scenario(): Scenario | null {
      return findScenario(scenarios, claimed.request, state, run.actions.length > 0)
    },
    /** What was asked for, with what its scenario says where it says nothing itself. */
    get request(): AdmittedRequest {
      return withScenario(claimed.request, run.scenario)
    },
    /** Milliseconds of work so far, over all claims. */
    get workedMs(): number {
      return claimed.worked_ms + clock.monotonicMs() - startedAt
    },
    /** Milliseconds of its time limit that are left; 0 or less: none. */
    get timeLeftMs(): number {
      return (run.request.limits?.timeout_ms ?? defaultLimits.timeout_ms) - run.workedMs
    },
    /** Whether a tool can be used; each planner visit asks it of all tools, and most ask the database. */
    isAvailable(tool: string, ask: () => Promise<boolean>): Promise<boolean> {
      const at = clock.monotonicMs()
      const known = availability.get(tool)
      if (known && at - known.at < availabilityMs) return known.answer
      const answer = ask()
      availability.set(tool, { at, answer })
      answer.catch(() => availability.delete(tool))
      return answer
    },
    /** Resolves once nothing is being committed any more. */
    async settled(): Promise<void> {
      await tail
    },
    permit,
    servicesFor,
    /** Begins a visit. */
    openVisit: (permit = freePermit): Visit => ({
      id: newId(),
      beganAtMs: clock.monotonicMs(),
      promptSha256: null,
      permit,
    }),
    /** Commits one action and gives the state that holds it. */
    append(
      visit: Visit,
      node: string,
      draft: ActionDraft & { next: string[] },
      patch: Patch,
      effect: EffectResult | null,
    ): Promise<RuntimeState> {
      return commitInTurn(visit, node, draft, patch, (entry) => log.append({ ...entry, effect }))
    },
    /** Commits the run's last action and its end. */
    finish(visit: Visit, draft: ActionDraft, patch: Patch, outcome: Outcome): Promise<RuntimeState> {
      return commitInTurn(visit, 'end', { ...draft, next: [] }, patch, async (entry, committed) => {
        await log.finish(entry, outcome, toResult(committed, outcome))
        run.ended = true
      })
    },
  }
  return run
}
