import { type ActionDraft, prepareAction } from '../state/checkpoint.ts'
import { MasonError } from '../state/errors.ts'
import { applyAction } from '../state/fold.ts'
import type { Outcome } from '../state/outcome.ts'
import type { Patch } from '../state/patch.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { EffectResult } from '../state/ports/effects.ts'
import type { Question } from '../state/ports/questions.ts'
import type { CallRef, RunLog, RunResult } from '../state/ports/run-log.ts'
import { noTracer, type Tracer } from '../state/ports/tracer.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import type { ActionBody, Json, RuntimeState } from '../state/runtime-state.ts'
import type { Scenario, Scenarios } from '../state/scenario.ts'
import { type ReadonlyAction, turnGoal } from '../state/turn.ts'
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

type Committed = { body: ActionBody; patch: Patch }

/**
 * One run being worked on in this process: the state it holds, and the one queue through which its branches append.
 * The queue owns `next_seq`; the state changes only after a commit, through the same fold that re-reads it.
 */
export class LiveRun {
  readonly claimed: ClaimedRun
  readonly log: RunLog
  readonly events: RunEvents
  readonly tracer: Tracer
  /** The current ones: a changed row counts from the next visit on. */
  readonly scenarios: Scenarios
  /** Questions that branches of the current fan-out wait on. */
  readonly openQuestions: { call: CallRef; question: Question }[] = []
  /** Until when everything that is left to do has to wait, or null. */
  waitsUntil: Date | null = null
  /** The node whose error ended the walk. */
  failedAt: string | null = null
  /** Set once it is known how the run ends. */
  outcome: Outcome | null = null
  ended = false
  readonly #clock: Clock
  readonly #newAttemptId: () => string
  readonly #startedAt: number
  #state: RuntimeState
  #nextSeq: number
  #tail: Promise<unknown> = Promise.resolve()

  constructor(
    claimed: ClaimedRun,
    options: {
      log: RunLog
      clock: Clock
      events: RunEvents
      newAttemptId: () => string
      scenarios?: Scenarios
      tracer?: Tracer
    },
  ) {
    this.claimed = claimed
    this.log = options.log
    this.events = options.events
    this.tracer = options.tracer ?? noTracer
    this.scenarios = options.scenarios ?? noScenarios
    this.#clock = options.clock
    this.#newAttemptId = options.newAttemptId
    this.#startedAt = options.clock.monotonicMs()
    this.#state = claimed.state
    this.#nextSeq = claimed.next_seq
  }

  get state(): RuntimeState {
    return this.#state
  }

  /** The actions of this run's turn; none before `load-session` has opened it. */
  get actions(): readonly ReadonlyAction[] {
    return this.#state.action_history[this.claimed.turn - 1] ?? []
  }

  get scenario(): Scenario | null {
    return findScenario(this.scenarios, this.claimed.request, this.#state, this.actions.length > 0)
  }

  /** What was asked for, with what its scenario says where it says nothing itself. */
  get request(): AdmittedRequest {
    return withScenario(this.claimed.request, this.scenario)
  }

  /** Milliseconds of work so far, over all claims. */
  get workedMs(): number {
    return this.claimed.worked_ms + this.#clock.monotonicMs() - this.#startedAt
  }

  /** Resolves once nothing is being committed any more. */
  async settled(): Promise<void> {
    await this.#tail
  }

  /** Commits one action and gives the state that holds it. Branches come in turn, in the order they ask. */
  append(
    node: string,
    draft: ActionDraft & { next: string[] },
    patch: Patch,
    effect: EffectResult | null,
  ): Promise<RuntimeState> {
    return this.#inTurn(node, draft, patch, async (entry) => this.log.append({ ...entry, effect }))
  }

  /** Commits the run's last action and its end. */
  finish(draft: ActionDraft, patch: Patch, outcome: Outcome): Promise<RuntimeState> {
    return this.#inTurn('end', { ...draft, next: [] }, patch, async (entry, committed) => {
      await this.log.finish(entry, outcome, this.#resultOf(committed, outcome))
      this.ended = true
    })
  }

  #inTurn(
    node: string,
    draft: ActionDraft & { next: string[] },
    patch: Patch,
    commit: (entry: Parameters<RunLog['append']>[0], committed: Committed) => Promise<void>,
  ): Promise<RuntimeState> {
    const turn = this.#tail.then(async () => {
      if (this.ended) throw new MasonError('lease_lost', 'this run has ended')
      const prepared = await prepareAction(node, draft, patch, (bytes) => this.log.storeBlob(bytes))
      const seq = this.#nextSeq
      const entry = {
        seq,
        attempt_id: this.#newAttemptId(),
        body: prepared.bodyText,
        patch: prepared.patchText,
        usage: prepared.body.usage,
        worked_ms: this.workedMs,
        effect: null,
      }
      await commit(entry, prepared)
      this.#nextSeq = seq + 1
      this.#state = applyAction(this.#state, { seq, turn: this.claimed.turn, ...prepared })
      this.events.onAction(seq)
      return this.#state
    })
    this.#tail = turn.catch(() => {})
    return turn
  }

  #resultOf({ patch }: Committed, outcome: Outcome): RunResult {
    const answer = patch.chat_history?.findLast((message) => message.role === 'assistant')?.content
    return {
      answer: answer ?? null,
      output_structure: this.#state.output_structure as unknown as Json,
      error: outcome.status === 'failed' ? (outcome.error as Json) : null,
      goal: turnGoal(this.#state),
    }
  }
}
