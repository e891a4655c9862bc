import { budgetsRef, clockRef, databaseRef, ledgerFlushRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createBudgetChecks } from './budget-checks.ts'

export default defineService({
  provides: budgetsRef,
  needs: { database: databaseRef, clock: clockRef, flush: ledgerFlushRef },
  start: ({ database, clock, flush }) => createBudgetChecks(database, clock, flush),
})
