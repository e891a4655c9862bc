import type { ModelMessage, ModelRequest, Models } from '../../../state/ports.ts'
import type { ModelService } from '../call-ports.ts'
import type { Chooser } from '../choose/choose.ts'
import { createLines, offlineModelId } from '../choose/lines.ts'
import { standsInFor } from '../choose/roles.ts'
import { sees } from '../choose/sight.ts'
import type { AskMessage, Caller, ModelAsk, ModelEntry, Registry, RegistryView } from '../ports.ts'
import { plainUsage } from '../usage.ts'
import { shownUrl } from './failure.ts'

type Parts = {
  ask: ModelService['ask']
  registry: Pick<Registry, 'view'>
  chooser: Chooser
  costOf: ((runId: string) => Promise<number>) | undefined
}

/** An ask of which everything but the role is left out. */
export const emptyAsk: Omit<ModelAsk, 'role'> = {
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
const askMessage = (message: ModelMessage): AskMessage => {
  if (message.role !== 'user' || message.images === undefined) return message
  const images = message.images.map(({ mime_type, data }) => ({
    type: 'image_url' as const,
    image_url: { url: `data:${mime_type};base64,${data}` },
  }))
  return { role: 'user', content: [...images, { type: 'text', text: message.content }] }
}

const askOfRequest = ({ role, messages, tools, schema }: ModelRequest): ModelAsk => ({
  ...emptyAsk,
  role,
  messages: messages.map(askMessage),
  tools: tools ?? [],
  schema: schema ?? null,
})

const lines = new WeakMap<RegistryView, ReturnType<typeof createLines>>()

/** The models that may serve, whoever of them it will be. */
const serving = (
  view: RegistryView,
  role: ModelRequest['role'],
  model: string | undefined,
  images = false,
): ModelEntry[] => {
  const lineFor = lines.get(view) ?? createLines(view)
  lines.set(view, lineFor)
  const line = lineFor({ role, images, ...(model !== undefined && { model }) })
  return (line?.members ?? []).flatMap(({ entry }) => (entry?.active ? [entry] : []))
}

const smallest = (values: readonly (number | null)[]): number | null => {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** The port of the graph, on behalf of one caller. */
export const portFor = ({ ask, registry, chooser, costOf }: Parts, caller: Caller): Models => ({
  async call(request, signal) {
    const { role, model, onText } = request
    const answered = await ask(
      { role, ...(model !== undefined && { model }) },
      askOfRequest(request),
      caller,
      ({ text }, attempt) => {
        if (text !== '') onText?.(text, attempt)
      },
      signal,
    )
    const { text, reasoning, tool_calls, finish, model: named } = answered.result
    return {
      text,
      reasoning,
      tool_calls,
      finish,
      usage: plainUsage(answered.usage),
      model: named ?? answered.model,
      by: answered.model,
    }
  },
  cost: async () => (caller.run_id === null ? 0 : ((await costOf?.(caller.run_id)) ?? 0)),
  sees: () =>
    serving(registry.view, 'vision', undefined, true).some(
      (model) => sees(model) && chooser.isOpenTo(registry.view, model, caller),
    ),
  knows: (model) => {
    const entry = registry.view.models.get(model)
    return entry?.active === true && standsInFor(entry.category, 'text')
  },
  window(role, model) {
    const entries = serving(registry.view, role, model)
    return {
      context: smallest(entries.map(({ context_window }) => context_window)),
      output: smallest(entries.map(({ max_output }) => max_output)),
    }
  },
  describe() {
    const { candidates, passedOver } = chooser.choose(registry.view, { role: 'planner' }, caller)
    const [first] = candidates
    const model = first?.model ?? registry.view.models.get(passedOver[0]?.model ?? '')
    if (model === undefined) return { name: 'no model', offline: false, base_url: null }
    const offline = model.id === offlineModelId
    return { name: model.name, offline, base_url: offline ? null : shownUrl(model.endpoint.base_url) }
  },
})
