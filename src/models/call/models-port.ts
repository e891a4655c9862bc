import { isJsonText } from '../../infra/lib/json-text.ts'
import { MasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import { type ModelRequest, type ModelRole, type Models, rulesOnly } from '../../state/ports/models.ts'
import type { ModelGateway, ModelResponse, ModelSelector } from '../ports/call-ports.ts'
import {
  addMeteredUsage,
  type CanonicalMessage,
  type CanonicalRequest,
  type ModelCaller,
  type Registry,
  toPlainUsage,
} from '../ports/model-ports.ts'
import { canServeCategory } from '../routing/candidate-order.ts'
import type { ModelChooser } from '../routing/choose-model-and-key.ts'
import { supportsImages } from '../routing/vision.ts'
import { toPublicUrl } from './call-errors.ts'

/** One call whose reply may be cut; `onText` gets its text, as in `ModelRequest`. */
type UncutCall = {
  selector: ModelSelector
  ask: CanonicalRequest
  caller: ModelCaller
  onText(text: string, attempt: number): void
}

type CutReplyServices = { ask: ModelGateway['ask']; registry: Pick<Registry, 'view'>; log: Log }

const shorterNote =
  'Your answer was cut at the output limit. Answer again, much shorter, with the whole JSON and nothing else.'
const continueNote =
  'Your answer was cut at the output limit. Continue exactly there: begin with the last line of it once more, ' +
  'as far as it goes, and write on to the end. Say nothing of the cut.'

/** Fewer characters at the seam may be the same by chance. */
const minOverlap = 4
const maxOverlap = 2000

/** The continuation of a text without what it repeats of it: all of it, or its end from the beginning of a word on. */
const dropOverlap = (before: string, after: string): string => {
  if (after.startsWith(before)) return after.slice(before.length)
  const rest = after.trimStart()
  for (let length = Math.min(before.length, rest.length, maxOverlap); length >= minOverlap; length--) {
    const begin = before.length - length
    const isWord = begin === 0 || /\s/.test(before[begin - 1] ?? '') || /\W/.test(before[begin] ?? '')
    if (isWord && before.endsWith(rest.slice(0, length))) return rest.slice(length)
  }
  return after
}

/** What a model gets that goes on with a cut reply. */
const toContinuation = (text: string, how: 'none' | 'prefill' | 'flag'): CanonicalMessage[] => {
  const said = { role: 'assistant', content: text } as const
  if (how === 'none') return [said, { role: 'user', content: continueNote }]
  return [how === 'flag' ? { ...said, prefix: true } : said]
}

/** A later response of one call, with what the first one took. */
const addSpent = (later: ModelResponse, first: ModelResponse): ModelResponse => ({
  ...later,
  usage: addMeteredUsage(first.usage, later.usage),
  attempts: [...first.attempts, ...later.attempts],
})

/**
 * One call of a role. A reply that was cut at the output limit is asked for again with the model's full limit, where that of
 * the request was lower, else continued once; JSON is asked for once more, shorter, and never stitched. What stays cut
 * has `finish: "length"`. One with calls is the caller's: none of them may be made. Throws `model_bad_reply` for JSON that
 * stays cut, and what the gateway throws.
 */
const askUncut = async (
  { ask, registry, log }: CutReplyServices,
  { selector, ask: request, caller, onText }: UncutCall,
  signal: AbortSignal,
): Promise<ModelResponse> => {
  let attempts = 0
  const send = (to: ModelSelector, asked: CanonicalRequest, isStreamed = true): Promise<ModelResponse> => {
    const before = attempts
    return ask(
      to,
      asked,
      caller,
      ({ text, restart }, attempt) => {
        if (!isStreamed) return
        attempts = Math.max(attempts, before + attempt)
        if (text !== '' || restart) onText(text, before + attempt)
      },
      signal,
    )
  }
  const first = await send(selector, request)
  const { text, finish, tool_calls, reasoning } = first.result
  const isJsonReply = request.schema !== null
  const isTold = tool_calls.length > 0 || request.end?.continues(text) === false
  if (finish !== 'length' || isTold || (isJsonReply && isJsonText(text))) return first

  const entry = registry.view.models.get(first.model)
  // a format sends the limit of its model by itself
  const unknownUsage = entry?.format ? (entry.max_output ?? 0) : 0
  const used = first.result.usage?.completion_tokens ?? unknownUsage
  const isLower = entry?.max_output != null && used < entry.max_output
  const full = isLower ? { ...request.parameters, max_tokens: entry.max_output } : request.parameters
  const same = { ...selector, model: first.model }
  /** Another request, whose failure leaves the first reply as it is. */
  const again = async (asked: CanonicalRequest, isStreamed?: boolean): Promise<ModelResponse | null> => {
    log.info({ role: request.role, model: first.model }, 'a reply was cut at the output limit: asked again')
    try {
      return addSpent(await send(same, asked, isStreamed), first)
    } catch (error) {
      if (signal.aborted) throw error
      log.warn({ role: request.role, error: String(error) }, 'a cut reply stays as it is')
      return null
    }
  }
  if (isJsonReply) {
    const messages = [...request.messages, { role: 'user' as const, content: shorterNote }]
    const second = await again({ ...request, messages, parameters: full })
    if (second && (second.result.finish !== 'length' || isJsonText(second.result.text))) return second
    throw new MasonError('model_bad_reply', 'the JSON of the model was cut at its output limit, twice', {
      remedy: 'raise max_output of the model, or ask for less',
      detail: { usage: toPlainUsage((second ?? first).usage) },
    })
  }
  if (text.trim() === '' && reasoning.trim() === '') return first
  if (text.trim() === '' || isLower) {
    // reasoning took all of it: what is not known to be full is doubled
    const parameters = isLower || entry?.max_output != null ? full : { ...full, max_tokens: used * 2 || 8192 }
    if (parameters === request.parameters) return first
    return (await again({ ...request, parameters })) ?? first
  }
  const how = entry?.continuation ?? 'none'
  const base = how === 'none' ? text : text.trimEnd()
  const messages = [...request.messages, ...toContinuation(base, how)]
  const second = await again({ ...request, messages }, false)
  if (second === null || second.result.tool_calls.length > 0 || second.result.text.trim() === '')
    return second === null ? first : { ...second, result: first.result }
  const more = dropOverlap(base, second.result.text)
  if (more !== '' && base === text) onText(more, Math.max(attempts, 1))
  if (base !== text) onText(base + more, attempts + 1)
  return {
    ...second,
    result: {
      ...second.result,
      text: base + more,
      reasoning,
      finish: second.result.finish === 'stop' ? 'stop' : 'length',
    },
  }
}

type ModelsPortServices = {
  ask: ModelGateway['ask']
  registry: Pick<Registry, 'view'>
  chooser: ModelChooser
  costOf: ((runId: string) => Promise<number>) | undefined
  /** Which budget the caller has used up; null: none. */
  findReachedBudget: ((caller: ModelCaller) => Promise<object | null>) | undefined
  log: Log
}

/** A request with empty fields; add the role. */
export const emptyCanonicalRequest: Omit<CanonicalRequest, 'role'> = {
  messages: [],
  tools: [],
  schema: null,
  input: [],
  query: null,
  prompt: null,
  parameters: {},
  stream: true,
}

/** Images as data: addresses, before the text that asks about them. */
const toCanonicalMessage = (message: ModelMessage): CanonicalMessage => {
  if (message.role !== 'user' || message.images === undefined) return message
  const images = message.images.map(({ mime_type, data }) => ({
    type: 'image_url' as const,
    image_url: { url: `data:${mime_type};base64,${data}` },
  }))
  return { role: 'user', content: [...images, { type: 'text', text: message.content }] }
}

const toCanonicalRequest = ({
  role,
  messages,
  parts,
  tools,
  schema,
  end,
}: ModelRequest): CanonicalRequest => ({
  ...emptyCanonicalRequest,
  role,
  messages: messages.map(toCanonicalMessage),
  parts: parts ?? [],
  tools: tools ?? [],
  schema: schema ?? null,
  ...(end && { end }),
})

/** Roles that do not wait long for a model: rules decide in its place, or the run waits without a worker. */
const impatientRoles: ReadonlySet<string> = new Set<ModelRole>([
  'planner',
  'output',
  'understand',
  'reflection',
  'compaction',
])
/** They wait no longer for vendors that are known to be closed: it would hold a worker. */
const patience = { patienceMs: 2000, closedPatienceMs: 250 }
const noPatience = { patienceMs: 0, closedPatienceMs: 0 }

const findSmallest = (values: readonly (number | null)[]): number | null => {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** The models as nodes and tools see them, on behalf of one caller. */
export const createModelsPort = (
  { ask, registry, chooser, costOf, findReachedBudget, log }: ModelsPortServices,
  caller: ModelCaller,
): Models => ({
  async call(request, signal) {
    const { role, model, dialect, timeLeftMs, hasOthers, onText } = request
    const response = await askUncut(
      { ask, registry, log },
      {
        selector: {
          role,
          ...(model !== undefined && { model }),
          ...(dialect && { dialect }),
          ...(impatientRoles.has(role) && patience),
          ...(timeLeftMs !== undefined && { timeLeftMs }),
          ...(hasOthers && noPatience),
        },
        ask: toCanonicalRequest(request),
        caller,
        onText: (text, attempt) => onText?.(text, attempt),
      },
      signal,
    )
    const { text, reasoning, tool_calls, finish, cut, raw, model: upstreamModel } = response.result
    if (finish === 'unknown')
      log.warn({ role, model: response.model }, 'a model ended its reply for a reason that is not known')
    return {
      text,
      reasoning,
      tool_calls,
      finish,
      ...(cut !== undefined && { cut }),
      ...(raw !== undefined && { raw }),
      usage: toPlainUsage(response.usage),
      model: upstreamModel ?? response.model,
      by: response.model,
    }
  },
  cost: async () => (caller.run_id === null ? 0 : ((await costOf?.(caller.run_id)) ?? 0)),
  async isOverBudget() {
    try {
      const reached = (await findReachedBudget?.(caller)) ?? null
      if (reached) log.info({ ...caller, ...reached }, 'a run ends, because its budget is used up')
      return reached !== null
    } catch (error) {
      // the next step asks again
      log.warn({ ...caller, error: String(error) }, 'the budgets of a run could not be read')
      return false
    }
  },
  hasVision: () =>
    chooser
      .listActive(registry.view, { role: 'vision', images: true })
      .some((model) => supportsImages(model) && chooser.isOpenTo(registry.view, model, caller)),
  dialects: (role, model) =>
    chooser.listDialects(registry.view, { role, ...(model !== undefined && { model }) }, caller),
  hasModel: (model) => {
    const entry = registry.view.models.get(model)
    return entry?.active === true && canServeCategory(entry.category, 'text')
  },
  window(role, model) {
    const entries = chooser.listActive(registry.view, { role, ...(model !== undefined && { model }) })
    return {
      context: findSmallest(entries.map(({ context_window }) => context_window)),
      output: findSmallest(entries.map(({ max_output }) => max_output)),
    }
  },
  describe() {
    const { candidates, passedOver } = chooser.choose(registry.view, { role: 'planner' }, caller)
    const [first] = candidates
    const model = first?.model ?? registry.view.models.get(passedOver[0]?.model ?? '')
    if (model === undefined) return { name: 'no model', capabilities: [], base_url: null }
    const { name, capabilities, endpoint } = model
    const isHere = capabilities.includes(rulesOnly)
    return { name, capabilities, base_url: isHere ? null : toPublicUrl(endpoint.base_url) }
  },
})
