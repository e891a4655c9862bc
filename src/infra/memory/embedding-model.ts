import { createLines } from '../models/choose/lines.ts'
import type { RegistryView } from '../models/ports.ts'

/**
 * The model whose vectors memories are kept in: the first of the role `embedding`, however it fares just now, since
 * vectors of two models cannot be compared. Null: the registry has none, and the built-in embedding serves.
 */
export const embeddingModelOf = (view: RegistryView): { name: string; upstream_name: string } | null => {
  const members = createLines(view)({ role: 'embedding' })?.members ?? []
  const entry = members.find((member) => member.entry?.active === true)?.entry
  return entry ? { name: entry.name, upstream_name: entry.upstream_name } : null
}
