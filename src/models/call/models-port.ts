import type { ModelMessage } from '../../state/ports/model-messages.ts'
import { type ModelRequest, type ModelRole, type Models, rulesOnly } from '../../state/ports/models.ts'
import {
  type CanonicalMessage,
  type CanonicalRequest,
  type ModelCaller,
  toPlainUsage,
} from '../ports/model-ports.ts'
import type { AskServices } from '../providers/response-formats.ts'
import { canServeCategory } from '../routing/candidate-order.ts'
import { supportsImages } from '../routing/vision.ts'
import { toPublicUrl } from './call-errors.ts'
import { askUncut } from './cut-replies.ts'

type ModelsPortServices = AskServices & {
  readRunCost?: (runId: string) => Promise<number>
  findReachedBudget?: (caller: ModelCaller) => Promise<object | null>
}

/** A request with empty fields, whose answer comes whole; add the role. */
export const emptyCanonicalRequest: Omit<CanonicalRequest, 'role'> = {
  messages: [],
  tools: [],
  schema: null,
  input: [],
  query: null,
  prompt: null,
  parameters: {},
  stream: false,
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
  stream: true,
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
  { ask, registry, chooser, readRunCost, findReachedBudget, log }: ModelsPortServices,
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
  cost: async () => (caller.run_id === null ? 0 : ((await readRunCost?.(caller.run_id)) ?? 0)),
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
