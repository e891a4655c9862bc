import { setMaxListeners } from 'node:events'
import { Runnable, type RunnableConfig } from '@langchain/core/runnables'
import { EphemeralValue } from '@langchain/langgraph/channels'
import { Channel, Pregel } from '@langchain/langgraph/pregel'
// the main entry would hook into every promise of the process, for tracing that is not wanted here
import { Command, Send } from '@langchain/langgraph/web'
import { unlessAborted } from '../state/deadline.ts'
import type { VisitTarget } from './route.ts'

/** One visit, and the next targets; none where another branch decides, or where the walk ends. */
export type VisitStep<Walk> = (walk: Walk, target: VisitTarget) => Promise<readonly VisitTarget[]>

/**
 * Whether a visit leads to this one target alone, whatever it found: no fan-out, no join and no choice lies between them. Then
 * LangGraph has nothing to decide.
 */
export type IsStraight<Walk> = (walk: Walk, from: VisitTarget, to: VisitTarget) => boolean

/** Walks from some nodes on until no branch leads anywhere. An error of one branch, or the signal, ends the walk at once. */
export type Router<Walk> = (walk: Walk, from: readonly VisitTarget[], signal: AbortSignal) => Promise<void>

/**
 * LangGraph as the router and nothing more: a task visits a node and those that follow it in a straight line, and `Send` names
 * what comes after a choice, a fan-out or a join. It is LangGraph's engine without what StateGraph wraps around every node
 * (channels for the state, writers, branches, each with its trace objects): nothing of the state passes through it. See
 * docs/decisions/0010 and 0121.
 */
export const createRouter = <Walk>(
  names: readonly string[],
  step: VisitStep<Walk>,
  isStraight: IsStraight<Walk> = () => false,
): Router<Walk> => {
  const task = new Task(step as VisitStep<unknown>, isStraight as IsStraight<unknown>)
  const engine = new Pregel({
    // no node waits on a channel: the first ones come with the walk, all others by `Send`
    nodes: Object.fromEntries(names.map((name) => [name, Channel.subscribeTo([]).pipe(task)])),
    channels: { [input]: new EphemeralValue() },
    inputChannels: input,
    outputChannels: [],
    streamChannels: [],
    autoValidate: false,
    checkpointer: false,
  })
  return async (walk, from, signal) => {
    if (from.length === 0) return
    await engine.invoke(new Command({ goto: from.map(toSend) }), {
      configurable: { [walkKey]: walk },
      recursionLimit: 1_000_000,
      maxConcurrency: maxBranches,
      // the one that streams only what a node asks for: nothing
      streamMode: 'custom',
      signal,
    })
  }
}

/** Branches of a fan-out that are under way together: a thousand that start at once would block the event loop. */
const maxBranches = 100

const input = 'input'
const walkKey = 'mason_walk'
const toSend = (target: VisitTarget): Send => new Send(target.node, target)

/** Whether a call leads to a call: its own next step, or the next of its lane. */
const isSameLane = (from: VisitTarget, to: VisitTarget): boolean => from.call !== null && to.call !== null

/** Where a task of LangGraph puts its writes; `Send`s go to the channel of tasks. */
const writeKey = '__pregel_send'
const tasksChannel = '__pregel_tasks'
type Write = (writes: [channel: string, value: unknown][]) => void

/** A visit, and what follows it in a straight line, as LangGraph runs it. */
class Task extends Runnable<VisitTarget, void> {
  lc_namespace = ['mason', 'graph']
  readonly #step: VisitStep<unknown>
  readonly #isStraight: IsStraight<unknown>

  constructor(step: VisitStep<unknown>, isStraight: IsStraight<unknown>) {
    super()
    this.#step = step
    this.#isStraight = isStraight
  }

  async invoke(
    target: VisitTarget,
    { configurable = {}, signal }: Partial<RunnableConfig> = {},
  ): Promise<void> {
    if (!signal) throw new TypeError('LangGraph gave a task no signal')
    // all visits of a step share it
    setMaxListeners(0, signal)
    const walk: unknown = configurable[walkKey]
    const visit = (to: VisitTarget) => {
      signal.throwIfAborted()
      return unlessAborted(this.#step(walk, to), signal)
    }
    let at = target
    let next = await visit(at)
    // a lane goes on by itself too: the engine begins its next step once all tasks of this one have ended
    for (let [to] = next; to && next.length === 1; [to] = next) {
      if (!isSameLane(at, to) && !this.#isStraight(walk, at, to)) break
      at = to
      next = await visit(at)
    }
    const write: Write = configurable[writeKey]
    write(next.map((one) => [tasksChannel, toSend(one)]))
  }
}
