import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'budgets', tables: ['budget_requests', 'budgets'] })
