import type { Wanted } from '../call-ports.ts'
import type { ModelEntry, RegistryView, RouteEntry } from '../ports.ts'
import { type Line, lineOf } from './order.ts'
import { categoryOfRole, standsInFor } from './roles.ts'

/** Ids of the entries that the settings make: those of OPENAI_*, and without them the built-in offline model. */
export const settingsModelId = 'mod_settings'
export const settingsEmbeddingModelId = 'mod_settings_embedding'
export const offlineModelId = 'mod_offline'
const ofSettings = new Set([settingsModelId, settingsEmbeddingModelId])

/**
 * Which models serve what is wanted, in order: the alias alone; else the route of the role; else that of the category;
 * else the model of the settings; else the active models of the category, the oldest first; else the offline model.
 * Null: there is no model of this alias.
 */
export const createLines = (view: RegistryView): ((wanted: Wanted) => Line | null) => {
  const all = [...view.models.values()]
  const byRoute = new Map<RouteEntry, Line>()
  const byDefault = new Map<string, Line>()
  const byAlias = new Map<string, Line>()

  const single = (entry: ModelEntry, category: string | null): Line =>
    lineOf('priority', [{ name: entry.name, entry, weight: 1 }], category)

  const ofRoute = (route: RouteEntry, category: string | null): Line => {
    const known = byRoute.get(route)
    if (known) return known
    const members = route.models.map(({ model, weight }) => ({
      name: model,
      entry: view.models.get(model) ?? null,
      weight,
    }))
    const line = lineOf(route.strategy, members, category)
    byRoute.set(route, line)
    return line
  }

  const defaultsFor = (category: string): readonly ModelEntry[] => {
    const settings = all.filter(({ id, category: own }) => ofSettings.has(id) && standsInFor(own, category))
    if (settings.length > 0) return settings
    const own = all.filter(
      (model) =>
        model.id !== offlineModelId &&
        model.category === category &&
        model.active &&
        model.vendor.active &&
        model.endpoint.active,
    )
    if (own.length > 0) return own
    return all.filter((model) => model.id === offlineModelId && standsInFor(model.category, category))
  }

  const ofCategory = (category: string): Line => {
    const route = view.routesByCategory.get(category)
    if (route) return ofRoute(route, category)
    const known = byDefault.get(category)
    if (known) return known
    const members = defaultsFor(category).map((entry) => ({ name: entry.name, entry, weight: 1 }))
    const line = lineOf('priority', members, category)
    byDefault.set(category, line)
    return line
  }

  return ({ role, model, category: named }) => {
    const category = named ?? categoryOfRole(role)
    if (model !== undefined) {
      const entry = view.models.get(model)
      if (!entry) return null
      const key = `${category ?? ''} ${model}`
      const line = byAlias.get(key) ?? single(entry, category)
      byAlias.set(key, line)
      return line
    }
    const route = view.routesByRole.get(role)
    return route ? ofRoute(route, category) : ofCategory(category ?? 'text')
  }
}
