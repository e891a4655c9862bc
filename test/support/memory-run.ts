import type { Graph } from '../../src/graph/build.ts'
import { executeRun, type RunExit } from '../../src/graph/execute.ts'
import { createLiveRun, type LiveRun } from '../../src/graph/live-run.ts'
import { MasonError } from '../../src/state/errors.ts'
import { type ActionRow, foldActions } from '../../src/state/fold.ts'
import type { Outage } from '../../src/state/outage.ts'
import type { Outcome } from '../../src/state/outcome.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import type { EffectResult } from '../../src/state/ports/effects.ts'
import type { ModelReply, ModelRequest, Models } from '../../src/state/ports/models.ts'
import type { PersonAnswer, Question } from '../../src/state/ports/questions.ts'
import type { LogEntry, RunLog, RunResult } from '../../src/state/ports/run-log.ts'
import type { Services } from '../../src/state/ports/services.ts'
import type { WaitOutcome, WaitState } from '../../src/state/ports/waits.ts'
import type { AdmittedRequest } from '../../src/state/run-request.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import type { Scenarios } from '../../src/state/scenario.ts'
import { fakeServices } from './services.ts'

/** One run on a log in memory: the graph as it is, without a database, a queue or a network. */
export type MemoryRun = {
  rows: ActionRow[]
  questions: Question[]
  requeued: string[]
  outages: (Outage & { maxMs: number })[]
  ended: { outcome: Outcome; result: RunResult } | null
  texts: { node: string; attempt: number; text: string }[]
  request: AdmittedRequest
  turn: number
  blobs: Map<string, Uint8Array>
  answer: PersonAnswer | null
  /** By their refs as JSON. */
  waits: Map<string, WaitOutcome | null>
  workedMs: number
  /** Whether a run that this worker does not know the next node of can be left to others. */
  passesOn: boolean
  /** What the ledger says of every side effect. */
  effect: EffectResult
}

export const memoryRun = (request: Partial<AdmittedRequest> & { prompt: string }): MemoryRun => ({
  rows: [],
  questions: [],
  requeued: [],
  outages: [],
  ended: null,
  texts: [],
  request: { user_id: 'u1', files: [], ...request },
  turn: 1,
  blobs: new Map(),
  answer: null,
  waits: new Map(),
  workedMs: 0,
  passesOn: true,
  effect: { effect_id: 'effect', response: '' },
})

export type Settings = {
  models?: Models
  clock?: Clock
  control?: AbortController
  scenarios?: Scenarios
  services?: Partial<Services>
  /** Actions after which the worker is gone: its next commit is refused, as it is after a kill. */
  diesAfter?: number
}

const testClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms).unref()
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(signal.reason)
      })
    }),
}

/** A worker takes the run where its rows stand, and works until it lets go of it. */
export const workOn = async (
  graph: Graph,
  memory: MemoryRun,
  settings: Settings = {},
): Promise<{ left: RunExit; run: LiveRun; state: RuntimeState }> => {
  const { clock = testClock, control = new AbortController() } = settings
  const run = createLiveRun(
    {
      run_id: 'run',
      session_id: 'session',
      business_id: 'default',
      user_id: memory.request.user_id,
      turn: memory.turn,
      next_seq: memory.rows.length + 1,
      worked_ms: memory.workedMs,
      request: memory.request,
      state: foldActions(memory.rows),
    },
    {
      log: logOf(memory, settings.diesAfter ?? Number.POSITIVE_INFINITY),
      clock,
      newId: () => 'attempt',
      ...(settings.scenarios && { scenarios: settings.scenarios }),
      events: {
        onAction() {},
        onText: ({ node, attempt, text }) => void memory.texts.push({ node, attempt, text }),
      },
    },
  )
  const services = fakeServices({
    clock,
    ...(settings.models && { models: settings.models }),
    blobs: { read: async (hash) => memory.blobs.get(hash) ?? null, store: async () => '' },
    ...settings.services,
  })
  const left = await executeRun(graph, run, services, control)
  return { left, run, state: foldActions(memory.rows) }
}

const logOf = (memory: MemoryRun, diesAfter: number): RunLog => {
  const keep = (entry: LogEntry): void => {
    if (memory.ended || memory.rows.length >= diesAfter || entry.seq !== memory.rows.length + 1)
      throw new MasonError('lease_lost', 'another worker has this run')
    memory.rows.push({
      seq: entry.seq,
      turn: memory.turn,
      body: JSON.parse(entry.body),
      patch: JSON.parse(entry.patch),
    })
    memory.workedMs = entry.worked_ms
  }
  return {
    append: async (entry) => keep(entry),
    finish: async (entry, outcome, result) => {
      keep(entry)
      memory.ended = { outcome, result }
    },
    async park(questions) {
      memory.questions.push(...questions.slice(0, 1).map(({ question }) => question))
      return 'parked'
    },
    async startWaits(call, first, requests) {
      const states: WaitState[] = []
      for (const [at, { start, poll }] of requests.entries()) {
        const wait = { ...call, part: first + at }
        const key = JSON.stringify(wait)
        if (!memory.waits.has(key)) {
          memory.waits.set(key, null)
          await start?.({ query: async () => ({ rows: [] }) }, wait)
        }
        states.push({ outcome: memory.waits.get(key) ?? null, is_poll_due: poll !== undefined })
      }
      return states
    },
    async endWait(wait, outcome) {
      memory.waits.set(JSON.stringify(wait), outcome)
      return outcome
    },
    delayPoll: async () => {},
    closeWaits: async () => ({}),
    requeue: async (runAt) => void memory.requeued.push(runAt),
    waitForModel: async (outage, maxMs) => void memory.outages.push({ ...outage, maxMs }),
    readOutage: async () => null,
    passToNewerWorker: async () => memory.passesOn,
    readAnswer: async () => memory.answer,
    effect: async () => memory.effect,
    storeBlob: async (bytes) => {
      const hash = `blob-${memory.blobs.size}`
      memory.blobs.set(hash, bytes)
      return hash
    },
  }
}

export type Said = Partial<Omit<ModelReply, 'tool_calls'>> & {
  tool_calls?: readonly { id?: string; name: string; arguments: unknown }[]
}

/** A reply as the port gives it. Arguments become JSON text, ids are made. */
export const reply = ({ tool_calls = [], ...said }: Said = {}): ModelReply => ({
  text: '',
  reasoning: '',
  finish: 'stop',
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  model: 'test',
  ...said,
  tool_calls: tool_calls.map(({ id, name, arguments: args }, index) => ({
    id: id ?? `call_${index}`,
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
  })),
})

export type Thinker = (request: ModelRequest, nth: number) => Said | Error
/** Models that answer by a function of the request and of how many of its role came before, from 1. */
export const modelsOf = (think: Thinker): Models & { requests: ModelRequest[] } => {
  const requests: ModelRequest[] = []
  return {
    requests,
    async call(request, signal) {
      signal.throwIfAborted()
      requests.push(request)
      const said = think(request, requests.filter(({ role }) => role === request.role).length)
      if (said instanceof Error) throw said
      if (said.text) request.onText?.(said.text, 1)
      return reply(said)
    },
    hasModel: () => true,
    describe: () => ({ name: 'test', capabilities: [], base_url: null }),
  }
}

/** The planner's replies one after the other, the last one again and again; other roles by rules. */
export const planners = (...replies: (Said | Error)[]): Models & { requests: ModelRequest[] } =>
  modelsOf(({ role }, nth) =>
    role === 'planner' ? (replies[Math.min(nth, replies.length) - 1] ?? { text: 'Done.' }) : { text: '' },
  )
