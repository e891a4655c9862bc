import { unlessAborted } from '../state/deadline.ts'
import { MasonError, toErrorMessage } from '../state/errors.ts'
import type { Blobs } from '../state/ports/blobs.ts'
import type { ModelMessage } from '../state/ports/model-messages.ts'
import type { ModelRequest, ModelRole, Models } from '../state/ports/models.ts'
import type { LogEntry, RunLog } from '../state/ports/run-log.ts'
import { defaultNeeds, type Services } from '../state/ports/services.ts'
import type { ActionBody } from '../state/runtime-state.ts'
import type { Scenarios } from '../state/scenario.ts'
import type { Graph } from './build.ts'
import { type ClaimedRun, createLiveRun } from './live-run.ts'
import { hashMessages } from './prompt-hash.ts'
import { describeEffects } from './tool-effects.ts'

/** The first request of a visit to a model, as it would be sent now. */
export type RebuiltPrompt = {
  role: ModelRole
  /** The alias that the visit names; null: its role decides. */
  model: string | null
  messages: readonly ModelMessage[]
  sha256: string
  /** Content that is not there any more. */
  lost: readonly string[]
}

type RebuildRequest = {
  /** The run in the state before the action. */
  claimed: ClaimedRun
  node: string
  /** The index of the call that the action answers; null: it answers none. */
  call: number | null
  /** When the visit began. */
  at: Date
  services: Services
  scenarios: Scenarios
}

/** A rebuild that takes longer is given up. */
const timeoutMs = 10_000

/**
 * Visits a node or tool again, up to its first request to a model. Nothing is sent, written or asked: a visit that would do
 * that before, or that reads more than the state and its blobs, is `no_prompt`, and so is one without a request.
 */
export const rebuildPrompt = async (
  graph: Graph,
  { claimed, node, call, at, services, scenarios }: RebuildRequest,
): Promise<RebuiltPrompt> => {
  const part = [...graph.parts.nodes, ...graph.parts.tools].find(({ name }) => name === node)
  if (!part) throw createNoPromptError(`this version has no node or tool "${node}"`)
  if (part.kind === 'tool' && call !== null && describeEffects(part) !== 'none')
    throw createNoPromptError(`the tool "${node}" is not pure, so it does not run again`)
  const control = new AbortController()
  const late = createNoPromptError(`"${node}" calls no model within ${timeoutMs / 1000} s`)
  const timer = setTimeout(() => control.abort(late), timeoutMs)
  const lost: string[] = []
  let found: ModelRequest | undefined
  /** Ends the visit, whatever it makes of the error. */
  const stop = (reason: Error): never => {
    control.abort(reason)
    throw control.signal.reason
  }
  const stopAt = (what: string): never =>
    stop(createNoPromptError(`"${node}" ${what} before it calls a model, which a rebuild does not repeat`))
  /** A port of which only `own` can be used. */
  const restrict = <Port extends object>(what: string, own: Partial<Port> = {}): Port =>
    new Proxy(own as Port, { get: (target, key) => Reflect.get(target, key) ?? (() => stopAt(what)) })
  const models: Models = {
    ...services.models,
    call: async (request) => {
      found = request
      return stop(new Error('the request is found'))
    },
    rerank: async () => stopAt('ranks documents'),
  }
  const blobs = restrict<Blobs>('stores bytes', {
    async read(sha256) {
      const bytes = await services.blobs.read(sha256)
      if (!bytes) lost.push(sha256)
      return bytes
    },
  })
  const others = (part.needs ?? defaultNeeds).filter((name: string) => name !== 'blobs')
  const unread = others.map((name: string) => [name, restrict(`uses the service ${name}`)])
  const end = async ({ body }: Pick<LogEntry, 'body'>): Promise<never> => {
    const { result } = JSON.parse(body) as ActionBody
    const failure = (result.error as { message?: string } | undefined)?.message
    const before = failure === undefined ? 'calls no model' : `fails before it calls a model: ${failure}`
    return stop(createNoPromptError(`"${node}" ${before}`))
  }
  const run = createLiveRun(claimed, {
    log: restrict<RunLog>('asks, waits or has a side effect', {
      append: end,
      finish: end,
      storeBlob: async () => '',
    }),
    clock: services.clock,
    events: { onAction() {}, onText() {} },
    newId: () => 'rebuilt',
    scenarios,
  })
  const clock = { ...services.clock, now: () => at }
  const guarded: Services = { ...services, ...Object.fromEntries(unread), models, blobs, clock }
  try {
    await unlessAborted(
      graph.visit(node, { run, services: guarded, signal: control.signal }, call),
      control.signal,
    )
  } catch (error) {
    if (error !== control.signal.reason)
      throw createNoPromptError(`"${node}" fails: ${toErrorMessage(error)}`)
    if (!found) throw error
  } finally {
    clearTimeout(timer)
  }
  if (!found) throw createNoPromptError(`"${node}" calls no model`)
  const { role, model = null, messages } = found
  return { role, model, messages, sha256: hashMessages(messages), lost }
}

/** The error of an action whose prompt is not known. */
export const createNoPromptError = (why: string): MasonError =>
  new MasonError('no_prompt', why, { remedy: 'read the action itself, and the state before it' })
