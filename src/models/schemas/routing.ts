import { z } from 'zod'
import {
  aliasSchema,
  createPlainTextSchema,
  toChangeSchema,
  toViewSchema,
} from '../../state/resource-schema.ts'
import { businessIdSchema, idSchema } from '../../state/run-request.ts'

/** Routes from roles and categories to models, and grants of keys. See docs/contract.md. */

const weightedModel = z.strictObject({
  model: aliasSchema.describe('The alias of a model'),
  weight: z.number().positive().max(1_000_000).describe('For `weighted`: its share').optional(),
})

const strategySchema = z.enum(['priority', 'weighted', 'least-busy', 'cheapest'])

/** The roles that Mason calls models for. */
const ownRoles = 'planner understand reflection output compaction distill vision embedding'.split(' ')

/** Insertions, deletions and replacements of a letter that lead from one text to the other (Levenshtein). */
const countEdits = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1]
    for (let column = 1; column <= to.length; column++)
      next.push(
        Math.min(
          (row[column] ?? 0) + 1,
          (next[column - 1] ?? 0) + 1,
          (row[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1),
        ),
      )
    row = next
  }
  return row.at(-1) ?? 0
}

const maxEdits = 2
/** The role of Mason's own that a name is a slip of; no call would ever use a route of the slip. */
const findMeantRole = (role: string): string | undefined => {
  if (ownRoles.includes(role)) return undefined
  // the edits of a role of 3 MB would be counted for seconds
  return ownRoles.find(
    (own) =>
      Math.abs(own.length - role.length) <= maxEdits && countEdits(role.toLowerCase(), own) <= maxEdits,
  )
}

const roleSchema = aliasSchema.superRefine((role, context) => {
  const meant = findMeantRole(role)
  if (meant !== undefined)
    context.addIssue({ code: 'custom', message: `"${role}" is no role; did you mean "${meant}"?` })
})

const routeFields = z.strictObject({
  role: roleSchema
    .describe(
      'planner, understand, reflection, output, embedding, vision, compaction, distill, or one of your own',
    )
    .nullish(),
  category: aliasSchema.describe('In place of a role: a category').nullish(),
  models: z.array(weightedModel).min(1).max(100).describe('The models, in order'),
  strategy: strategySchema.describe('How one of them is chosen').default('priority'),
})
/** The body of a new route: for a role or a category. */
export const routeInputSchema = routeFields.refine(
  ({ role, category }) => (role == null) !== (category == null),
  { path: ['role'], error: 'give either role or category' },
)
/** The bodies and the view of routes. */
export const routeSchemas = {
  input: routeInputSchema.meta({ examples: [{ role: 'planner', models: [{ model: 'gpt-mini' }] }] }),
  change: toChangeSchema(routeFields.pick({ models: true, strategy: true })).meta({
    examples: [{ models: [{ model: 'gpt-mini', weight: 1 }], strategy: 'weighted' }],
  }),
  view: toViewSchema({
    role: z.string().nullable(),
    category: z.string().nullable(),
    models: z.array(weightedModel),
    strategy: strategySchema,
  }),
}

const grantFields = z.strictObject({
  key_id: createPlainTextSchema(200).min(1).describe('The key that is reserved'),
  business_id: businessIdSchema.describe('For this business').nullish(),
  user_id: idSchema.describe('For this user of it; without a business: of `default`').nullish(),
})
/** Both given: that user of that business; a user alone is one of `default`. A key without grants is in the shared pool. */
const grantInputSchema = grantFields.refine(
  ({ business_id, user_id }) => business_id != null || user_id != null,
  { path: ['business_id'], error: 'give business_id, user_id or both' },
)
/** The bodies and the view of grants. */
export const grantSchemas = {
  input: grantInputSchema.meta({ examples: [{ key_id: 'key_1', business_id: 'acme' }] }),
  change: toChangeSchema(grantFields.omit({ key_id: true })).meta({ examples: [{ user_id: 'ann' }] }),
  view: toViewSchema({
    key_id: z.string(),
    business_id: z.string().nullable(),
    user_id: z.string().nullable(),
  }),
}

/** How a route chooses among its models. */
export type RoutingStrategy = z.infer<typeof strategySchema>
/** A route as admins see it. */
export type RouteView = z.infer<typeof routeSchemas.view>
/** The checked body of a new grant. */
export type GrantInput = z.infer<typeof grantInputSchema>
/** A grant as admins see it. */
export type GrantView = z.infer<typeof grantSchemas.view>
