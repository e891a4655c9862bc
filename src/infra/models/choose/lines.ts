import type { Wanted } from '../call-ports.ts'
import type { ModelEntry, RegistryView, RouteEntry } from '../ports.ts'
import { type Line, lineOf } from './order.ts'
import { categoryOfRole, standsInFor } from './roles.ts'
import { sees } from './sight.ts'

/** Ids of the entries that the settings make: those of OPENAI_*, and without them the built-in offline model. */
export const settingsModelId = 'mod_settings'
export const settingsEmbeddingModelId = 'mod_settings_embedding'
export const offlineModelId = 'mod_offline'
const ofSettings = new Set([settingsModelId, settingsEmbeddingModelId])

/**
 * Which models serve what is wanted, in order: the alias alone; else the route of the role; else that of the category;
 * else the model of the settings; else the active models of the category, the oldest first; else the offline model.
 * Where images are shown, the last three are those that see, the category's own first.
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

  const defaultsFor = (category: string, images: boolean): readonly ModelEntry[] => {
    const able = images ? all.filter(sees) : all
    const settings = able.filter(({ id, category: own }) => ofSettings.has(id) && standsInFor(own, category))
    if (settings.length > 0) return settings
    const others = able.filter(
      (model) => model.id !== offlineModelId && model.active && model.vendor.active && model.endpoint.active,
    )
    const own = others.filter((model) => model.category === category)
    // what sees may stand in any category that converses
    if (images)
      own.push(...others.filter((model) => !own.includes(model) && standsInFor(model.category, category)))
    if (own.length > 0) return own
    return able.filter((model) => model.id === offlineModelId && standsInFor(model.category, category))
  }

  const ofCategory = (category: string, images: boolean): Line => {
    const route = view.routesByCategory.get(category)
    if (route) return ofRoute(route, category)
    const key = `${images} ${category}`
    const known = byDefault.get(key)
    if (known) return known
    const members = defaultsFor(category, images).map((entry) => ({ name: entry.name, entry, weight: 1 }))
    const line = lineOf('priority', members, category)
    byDefault.set(key, line)
    return line
  }

  return ({ role, model, category: named, images = false }) => {
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
    return route ? ofRoute(route, category) : ofCategory(category ?? 'text', images)
  }
}
