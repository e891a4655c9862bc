import { z } from 'zod'
import { loadAllParts } from '../../src/app/load-all-parts.ts'
import { isCompactionDue } from '../../src/context/compaction.ts'
import { createLatestPositions } from '../../src/engine/runs/latest-positions.ts'
import { openDatabase } from '../../src/infra/database/open-database.ts'
import { plannerInstructions } from '../../src/nodes/planner/dialects/tools.ts'
import { plannerPrompt } from '../../src/nodes/planner/messages.ts'
import { applyAction } from '../../src/state/fold.ts'
import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import { emptyState, type RuntimeState } from '../../src/state/runtime-state.ts'
import { estimateTokens } from '../../src/state/text/tokens.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { addSteps, addTurn, compacted, conversation, openTurn } from '../support/conversation.ts'
import { query } from '../support/database.ts'
import { openNoOpRuntime } from '../support/no-op-runs.ts'
import { median } from '../support/statistics.ts'

const budget = 64_000
const log = { debug() {}, info() {}, warn() {}, error() {} }

const textOf = (messages: readonly ModelMessage[]): string =>
  messages.map((message) => JSON.stringify(message)).join('\n')

/** Prompts built before any is counted: a worker has built others when it takes a run up. */
const warmUp = 20

/**
 * The planner's prompt from so many actions, in a warm process: CPU of the first time in a state that it has not seen,
 * and of one more step. All states are made before, so that what their making left behind is not counted.
 */
const build =
  (actions: number, turns: number): Variant =>
  async () => {
    const first: number[] = []
    const next: number[] = []
    const states = Array.from({ length: warmUp + 21 }, () =>
      conversation(turns, Math.round(actions / turns / 3)),
    )
    for (let state of states) {
      const cpu = (): number => {
        const { user, system } = process.cpuUsage()
        return (user + system) / 1000
      }
      const before = cpu()
      isCompactionDue(state, budget)
      plannerPrompt(state, { budget, canOpen: true })
      first.push(cpu() - before)
      state = oneMore(state)
      const since = cpu()
      isCompactionDue(state, budget)
      plannerPrompt(state, { budget, canOpen: true })
      next.push(cpu() - since)
    }
    const counted = (each: number[]): number => median(each.slice(warmUp))
    return { 'ms CPU, first step': counted(first), 'ms CPU, next step': counted(next) }
  }

const oneMore = (state: RuntimeState): RuntimeState => {
  const actions = state.action_history.at(-1) ?? []
  const [plan, answer, reflection] = actions.slice(-3)
  let after = state
  for (const action of [plan, answer, reflection]) {
    if (!action) throw new Error('the turn has no step')
    const { id: _id, ...body } = structuredClone(action) as Parameters<
      typeof structuredClone<typeof action>
    >[0]
    const seq = (after.action_history.at(-1)?.at(-1)?.id ?? 0) + 1
    after = applyAction(after, { seq, turn: state.prompts.length, body: body as never, patch: {} })
  }
  return after
}

/** Tokens of a turn's prompt; beside it everything that was said and found. */
const curve: Variant = async () => {
  const found: Figures = {}
  let state = emptyState
  for (let turn = 1; turn <= 100; turn++) {
    state = addTurn(state, turn, 3)
    if (![1, 10, 30, 100].includes(turn)) continue
    const { messages } = plannerPrompt(state, { budget, canOpen: true })
    found[`tokens at turn ${turn}`] = messages.reduce((sum, { content }) => sum + estimateTokens(content), 0)
    found[`tokens without, turn ${turn}`] = everythingOf(state)
  }
  return found
}

const everythingOf = ({ chat_history, action_history }: RuntimeState): number =>
  estimateTokens(chat_history.map(({ content }) => content).join('\n')) +
  estimateTokens(
    action_history
      .flat()
      .map(({ result }) => JSON.stringify(result))
      .join('\n'),
  )

/** Characters with which two prompts begin alike. */
const sameBeginning = (before: string, after: string): number => {
  let same = 0
  while (same < before.length && before[same] === after[same]) same++
  return same
}

/** Of each step of a turn, the share of its prompt that the step before sent as its beginning. */
const prefix: Variant = async () => {
  const shares: number[] = []
  let state = addTurn(conversation(10, 3), 11, 1)
  let before = ''
  for (let step = 1; step <= 30; step++) {
    const text = textOf(plannerPrompt(state, { budget, canOpen: true }).messages)
    if (before) shares.push(sameBeginning(before, text) / text.length)
    before = text
    state = oneMore(state)
  }
  return { 'share as the step before': median(shares), 'the least': Math.min(...shares) }
}

/**
 * Of each turn's first prompt, the share that the last prompt of the turn before began with, compacted by rules where
 * that is due. Every request here shares its words with all that was said: the most that can be recalled is.
 */
const prefixOfTurns: Variant = async () => {
  const shares: number[] = []
  let [same, all] = [0, 0]
  let state = emptyState
  let before = ''
  for (let turn = 1; turn <= 100; turn++) {
    state = openTurn(state, turn)
    if (isCompactionDue(state, budget)) state = compacted(state, budget)
    const text = textOf(plannerPrompt(state, { budget, canOpen: true }).messages)
    if (turn > 1) {
      const shared = sameBeginning(before, text)
      shares.push(shared / text.length)
      same += shared
      all += text.length
    }
    state = addSteps(state, turn, 3)
    before = textOf(plannerPrompt(state, { budget, canOpen: true }).messages)
  }
  return { 'of all that was sent first': same / all, 'of a turn': median(shares) }
}

/** What every planner's prompt begins with, whichever user it is: vendors keep beginnings from 1,024 tokens on. */
const standing: Variant = async () => {
  const { tools } = await loadAllParts()
  const offered = tools.filter(({ kinds }) => kinds.includes('call'))
  const shown = offered.map(
    ({ name, description, input }) => name + description + JSON.stringify(z.toJSONSchema(input as z.ZodType)),
  )
  return { tokens: estimateTokens(plannerInstructions) + estimateTokens(shown.join('')) }
}

/** How a worker takes up turn 2 and turn 100 of a session: one that had the turn before, and one that never saw it. */
const takeUp: Variant = async (place) => {
  const runtime = await openNoOpRuntime(place)
  const session_id = 'long'
  await runtime.startWorker({ concurrency: 1 })
  const api = runtime.of('default')
  const turns = place.count(100)
  for (let turn = 1; turn <= turns; turn++) {
    const { run } = await api.submit({ prompt: `turn ${turn} ${'x'.repeat(500)}`, user_id: 'u1', session_id })
    await api.wait(run.id, AbortSignal.timeout(60_000))
  }
  await runtime.close()
  const database = await openDatabase(place.config, log)
  const time = async (turn: number, seen: boolean): Promise<number> => {
    const ms: number[] = []
    for (let n = 0; n < 30; n++) {
      const heads = createLatestPositions()
      if (seen) await heads.load(database, 'default', session_id, turn - 2)
      const since = performance.now()
      await heads.load(database, 'default', session_id, turn - 1)
      ms.push(performance.now() - since)
    }
    return median(ms)
  }
  const starts = await query<{ turn: number; ms: number }>(
    place,
    `SELECT r.turn, extract(epoch FROM a.created_at - r.started_at)::float8 * 1000 AS ms FROM runs r
     JOIN actions a ON a.tenant = r.tenant AND a.run_id = r.run_id AND a.seq = r.first_seq
     WHERE r.session_id = '${session_id}' ORDER BY r.turn`,
    [],
  )
  const near = (turn: number): number =>
    median(starts.filter((one) => Math.abs(one.turn - turn) <= 4 && one.turn > 1).map(({ ms }) => ms))
  const found = {
    'ms to load turn 3, seen': await time(3, true),
    [`ms to load turn ${turns}, seen`]: await time(turns, true),
    'ms to load turn 3, unseen': await time(3, false),
    [`ms to load turn ${turns}, unseen`]: await time(turns, false),
    'ms from claim to first action, turn 2': near(2),
    [`ms from claim to first action, turn ${turns}`]: near(turns),
  }
  await database.close()
  return found
}

const context: Case = {
  about:
    "what a prompt costs to build, how large it grows over a session, how much of it is the one before's, and a turn's start",
  ours: {
    'build from 1000 actions of one turn': build(1000, 1),
    'build from 1000 actions of 100 turns': build(1000, 100),
    'tokens over 100 turns': curve,
    'prefix over 30 steps': prefix,
    'prefix over 100 turns': prefixOfTurns,
    'prefix of all users': standing,
    'start of a turn': takeUp,
  },
}

export default context
