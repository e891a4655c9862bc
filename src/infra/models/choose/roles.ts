/** Which category serves a role that has no route of its own. CONTRACT section 7. */
const categories: Readonly<Record<string, string>> = {
  embedding: 'embedding',
  vision: 'multimodal',
}
const textRoles = new Set(['planner', 'understand', 'reflection', 'output', 'compaction', 'distill'])

/** The category of a known role; null for a name of the admin's own, whose route says all there is to say. */
export const categoryOfRole = (role: string): string | null =>
  Object.hasOwn(categories, role) ? (categories[role] ?? null) : textRoles.has(role) ? 'text' : null

const conversing = new Set(['text', 'reasoning', 'multimodal'])

/** Whether a model of one category can do the work of another: those that converse stand in for each other. */
export const standsInFor = (category: string, wanted: string): boolean =>
  category === wanted || (conversing.has(category) && conversing.has(wanted))
