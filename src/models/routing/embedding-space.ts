import type { RegistryView } from '../ports/model-ports.ts'
import { createCandidateOrders } from './candidate-order.ts'

/** The space of a model's vectors: only those of one space can be compared. */
export const toSpace = ({ name, upstream_name }: { name: string; upstream_name: string }): string =>
  `${name} ${upstream_name}`

/**
 * The model that texts are embedded with: the first of the role `embedding`, healthy or not, since vectors of two models cannot be
 * compared. Undefined: the registry has none.
 */
export const findEmbeddingModel = (view: RegistryView) =>
  createCandidateOrders(view)({ role: 'embedding' })?.members.find(({ entry }) => entry?.active)?.entry
