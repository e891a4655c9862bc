import type { Sql } from '../../state/ports.ts'
import type { UsageReports } from '../../state/registry/usage.ts'
import { createReconcile } from './reconcile.ts'
import { createReport } from './report.ts'

/** What admins learn from the ledger. */
export const createUsageReports = (database: Sql): UsageReports => ({
  report: createReport(database),
  reconcile: createReconcile(database),
})
