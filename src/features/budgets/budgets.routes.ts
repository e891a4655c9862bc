import { businessQuery } from '../../routes/parameters.ts'
import { resourceRoutes } from '../../routes/resource-routes.ts'
import { budgetsRef, databaseRef } from '../core.ref.ts'
import { defineRoutes } from '../definitions.ts'
import { budgetSchemas } from './budget-schemas.ts'
import { createBudgets } from './budgets.ts'

/** Budgets: what a business, a user or a token may spend. */
export default defineRoutes({
  needs: { database: databaseRef, budgets: budgetsRef },
  add(app, { database, budgets }) {
    const store = createBudgets(database, budgets.forget)
    resourceRoutes(app, {
      path: '/admin/v1/budgets',
      one: 'a budget',
      many: 'budgets',
      ...budgetSchemas,
      filter: businessQuery,
      summaries: {
        create: 'Adds a budget of a business, or of one of its users or tokens',
        get: 'Returns a budget, with what is spent and when it resets',
        change: 'Changes the limits of a budget; null takes one away',
        remove: 'Deletes a budget; what is spent still counts for a new one',
      },
      problems: { create: ['already_exists'] },
      store: () => store,
    })
  },
})
