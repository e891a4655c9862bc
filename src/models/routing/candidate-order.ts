import { rulesOnly } from '../../state/ports/models.ts'
import type { ModelSelector } from '../ports/call-ports.ts'
import type { MicroPrices, ModelEntry, RegistryView, RouteEntry } from '../ports/model-ports.ts'
import { supportsImages } from './vision.ts'

/** Which category serves a role that has no route of its own. CONTRACT section 7. */
const categories: Readonly<Record<string, string>> = { embedding: 'embedding', vision: 'multimodal' }
const textRoles = new Set(['planner', 'understand', 'reflection', 'output', 'compaction', 'distill'])

/** The category of a known role; null for a role of the admin's own, which only a route serves. */
const findRoleCategory = (role: string): string | null =>
  Object.hasOwn(categories, role) ? (categories[role] ?? null) : textRoles.has(role) ? 'text' : null

const chatCategories = new Set(['text', 'reasoning', 'multimodal'])

/** Whether a model of one category can serve a request for another: chat categories replace each other. */
export const canServeCategory = (category: string, requested: string): boolean =>
  category === requested || (chatCategories.has(category) && chatCategories.has(requested))

/** The id of the model that the settings OPENAI_* make. */
export const settingsModelId = 'mod_settings'
/** The id of the embedding model that the settings OPENAI_* make. */
export const settingsEmbeddingModelId = 'mod_settings_embedding'
/** Both: the models in OPENAI_MODEL and OPENAI_EMBEDDING_MODEL. */
export const settingsModelIds: readonly string[] = [settingsModelId, settingsEmbeddingModelId]

/** Whether it is no language model: used only where there is no other, and never with images. */
export const followsRules = ({ capabilities }: Pick<ModelEntry, 'capabilities'>): boolean =>
  capabilities.includes(rulesOnly)

/** A model of a route; `entry` is null where the route names an unknown model. */
type Member = { name: string; entry: ModelEntry | null; weight: number }

/** The models that serve a role or category, prepared once per view. */
export type CandidateOrder = {
  strategy: RouteEntry['strategy']
  /** In the order of the route; for `cheapest` from the cheapest on. */
  members: readonly Member[]
  /** The category that they must serve; null: any. */
  category: string | null
}

const sumPrices = ({ input, output }: MicroPrices): number => input + output

/** By input plus output price. Prices in another currency than the first one cannot be compared and come after. */
const sortByPrice = (members: readonly Member[]): Member[] => {
  const currency = members.find(({ entry }) => entry?.prices)?.entry?.prices?.currency
  const rank = ({ entry }: Member): number =>
    !entry?.prices
      ? Number.POSITIVE_INFINITY
      : entry.prices.currency === currency
        ? sumPrices(entry.prices)
        : Number.MAX_VALUE
  // two infinities have no difference
  return [...members].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) < rank(b) ? -1 : 1))
}

/**
 * The models that serve a selector, in order: the alias alone; else the route of the role; else that of the category;
 * else the model of the settings; else the active models of the category, the oldest first; else what only follows rules.
 * For a request with images, the last three are models with vision, the category's own first.
 * Null: there is no model with this alias.
 */
export const createCandidateOrders = (
  view: RegistryView,
): ((selector: ModelSelector) => CandidateOrder | null) => {
  const all = [...view.models.values()]
  const orders = new Map<string, CandidateOrder>()

  const ofModels = (entries: readonly ModelEntry[], category: string | null): CandidateOrder => ({
    strategy: 'priority',
    members: entries.map((entry) => ({ name: entry.name, entry, weight: 1 })),
    category,
  })
  const ofRoute = ({ models, strategy }: RouteEntry, category: string | null): CandidateOrder => {
    const members = models.map(({ model: name, weight }) => ({
      name,
      entry: view.models.get(name) ?? null,
      weight,
    }))
    return { strategy, members: strategy === 'cheapest' ? sortByPrice(members) : members, category }
  }

  const defaultsFor = (category: string, images: boolean): readonly ModelEntry[] => {
    const capable = images ? all.filter(supportsImages) : all
    const settings = capable.filter(
      ({ id, category: own }) => settingsModelIds.includes(id) && canServeCategory(own, category),
    )
    if (settings.length > 0) return settings
    const others = capable.filter(
      (model) => !followsRules(model) && model.active && model.vendor.active && model.endpoint.active,
    )
    const own = others.filter((model) => model.category === category)
    // a model with vision can serve any chat category
    if (images)
      own.push(
        ...others.filter((model) => !own.includes(model) && canServeCategory(model.category, category)),
      )
    if (own.length > 0) return own
    return capable.filter((model) => followsRules(model) && canServeCategory(model.category, category))
  }

  const createOrder = (
    { role, model, images = false }: ModelSelector,
    category: string | null,
  ): CandidateOrder | null => {
    if (model !== undefined) {
      const entry = view.models.get(model)
      return entry ? ofModels([entry], category) : null
    }
    const routeOfRole = view.routesByRole.get(role)
    if (routeOfRole) return ofRoute(routeOfRole, category)
    const served = category ?? 'text'
    const route = view.routesByCategory.get(served)
    return route ? ofRoute(route, served) : ofModels(defaultsFor(served, images), served)
  }

  return (selector) => {
    const { role, model, images, category = findRoleCategory(role) } = selector
    const key = JSON.stringify([role, model, images, category])
    const order = orders.get(key) ?? createOrder(selector, category)
    if (order) orders.set(key, order)
    return order
  }
}

/** What the strategies use besides the view. */
export type RoutingLoad = {
  /** From 0 up to but not including 1. */
  random(): number
  /** Calls of this process in flight to a model. */
  inFlight(modelId: string): number
}

const pickWeighted = (members: readonly Member[], { random }: RoutingLoad): number => {
  let point = random() * members.reduce((sum, { weight }) => sum + weight, 0)
  for (const [index, { weight }] of members.entries()) {
    point -= weight
    if (point < 0) return index
  }
  return members.length - 1
}

const pickLeastBusy = (members: readonly Member[], { inFlight }: RoutingLoad): number => {
  const calls = members.map(({ entry }) => inFlight(entry?.id ?? ''))
  return calls.indexOf(Math.min(...calls))
}

/** The models of an order one after the other, each once. The load counts when the next is taken. */
export function* iterateMembers({ strategy, members }: CandidateOrder, load: RoutingLoad): Generator<Member> {
  if (strategy === 'priority' || strategy === 'cheapest') return yield* members
  const pick = strategy === 'weighted' ? pickWeighted : pickLeastBusy
  const left = [...members]
  while (left.length > 0) yield* left.splice(pick(left, load), 1)
}
