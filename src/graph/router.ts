import { Runnable, type RunnableConfig } from '@langchain/core/runnables'
import { EphemeralValue } from '@langchain/langgraph/channels'
import { Channel, Pregel } from '@langchain/langgraph/pregel'
// the main entry would hook into every promise of the process, for tracing that nobody asked for
import { Command, Send } from '@langchain/langgraph/web'
import type { Target } from './route.ts'

/** What happens at one node, and where to go on from there; nowhere when that is for another branch, or nobody, to say. */
export type Step<Walk> = (walk: Walk, target: Target) => Promise<readonly Target[]>

/** Walks from some nodes on until no branch leads anywhere. A fault of one branch, or the signal, ends the walk at once. */
export type Router<Walk> = (walk: Walk, from: readonly Target[], signal: AbortSignal) => Promise<void>

/**
 * LangGraph as the router and nothing more: each visit is a task of its own, and `Send` names the next ones. It is
 * LangGraph's engine without what StateGraph wraps around every node (channels for the state, writers, branches, each
 * with its trace objects): nothing of the state passes through it. See docs/decisions/0010.
 */
export const createRouter = <Walk>(names: readonly string[], step: Step<Walk>): Router<Walk> => {
  const task = new Task(step as Step<unknown>)
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
    await engine.invoke(new Command({ goto: from.map(sendTo) }), {
      configurable: { [walkKey]: walk },
      recursionLimit: 1_000_000,
      // the one that streams only what a node asks for: nothing
      streamMode: 'custom',
      signal,
    })
  }
}

const input = 'input'
const walkKey = 'mason_walk'
const sendTo = (target: Target): Send => new Send(target.node, target)

/** Where a task of LangGraph lays its writes; `Send`s go to the channel of tasks. */
const writeKey = '__pregel_send'
const tasksChannel = '__pregel_tasks'
type Write = (writes: [channel: string, value: unknown][]) => void

/** One visit as LangGraph runs it. */
class Task extends Runnable<Target, void> {
  lc_namespace = ['mason', 'graph']
  readonly #step: Step<unknown>

  constructor(step: Step<unknown>) {
    super()
    this.#step = step
  }

  async invoke(target: Target, { configurable = {}, signal }: Partial<RunnableConfig> = {}): Promise<void> {
    if (!signal) throw new TypeError('LangGraph gave a task no signal')
    const next = await unlessAborted(this.#step(configurable[walkKey], target), signal)
    const write: Write = configurable[writeKey]
    write(next.map((one) => [tasksChannel, sendTo(one)]))
  }
}

/** `work`, or the signal's reason as soon as it is aborted; nobody waits for the work then. */
export const unlessAborted = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  let onAbort = (): void => {}
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
