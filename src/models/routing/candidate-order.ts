import { rulesOnly } from '../../state/ports/models.ts'
import type { ModelSelector } from '../ports/call-ports.ts'
import type { ModelEntry, RegistryView, RouteEntry } from '../ports/model-ports.ts'
import { type CandidateOrder, toCandidateOrder } from './routing-strategy.ts'
import { supportsImages } from './vision.ts'

/** Which category serves a role that has no route of its own. CONTRACT section 7. */
const categories: Readonly<Record<string, string>> = {
  embedding: 'embedding',
  vision: 'multimodal',
}
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
/** Whether it is no language model: used only where there is no other, and never with images. */
export const followsRules = ({ capabilities }: Pick<ModelEntry, 'capabilities'>): boolean =>
  capabilities.includes(rulesOnly)

const settingsModelIdSet = new Set([settingsModelId, settingsEmbeddingModelId])

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
  const byRoute = new Map<RouteEntry, CandidateOrder>()
  const byDefault = new Map<string, CandidateOrder>()
  const byAlias = new Map<string, CandidateOrder>()

  const single = (entry: ModelEntry, category: string | null): CandidateOrder =>
    toCandidateOrder('priority', [{ name: entry.name, entry, weight: 1 }], category)

  const ofRoute = (route: RouteEntry, category: string | null): CandidateOrder => {
    const cached = byRoute.get(route)
    if (cached) return cached
    const members = route.models.map(({ model, weight }) => ({
      name: model,
      entry: view.models.get(model) ?? null,
      weight,
    }))
    const order = toCandidateOrder(route.strategy, members, category)
    byRoute.set(route, order)
    return order
  }

  const defaultsFor = (category: string, images: boolean): readonly ModelEntry[] => {
    const capable = images ? all.filter(supportsImages) : all
    const settings = capable.filter(
      ({ id, category: own }) => settingsModelIdSet.has(id) && canServeCategory(own, category),
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

  const ofCategory = (category: string, images: boolean): CandidateOrder => {
    const route = view.routesByCategory.get(category)
    if (route) return ofRoute(route, category)
    const key = `${images} ${category}`
    const cached = byDefault.get(key)
    if (cached) return cached
    const members = defaultsFor(category, images).map((entry) => ({ name: entry.name, entry, weight: 1 }))
    const order = toCandidateOrder('priority', members, category)
    byDefault.set(key, order)
    return order
  }

  return ({ role, model, category: ownCategory, images = false }) => {
    const category = ownCategory ?? findRoleCategory(role)
    if (model !== undefined) {
      const entry = view.models.get(model)
      if (!entry) return null
      const key = `${category ?? ''} ${model}`
      const order = byAlias.get(key) ?? single(entry, category)
      byAlias.set(key, order)
      return order
    }
    const route = view.routesByRole.get(role)
    return route ? ofRoute(route, category) : ofCategory(category ?? 'text', images)
  }
}
