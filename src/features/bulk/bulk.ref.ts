import { defineRef } from '../definitions.ts'
import type { BulkJobs } from './bulk-jobs.ts'
import type { BulkWork } from './bulk-work.ts'

/** The actions on many runs of a business, and the work on those that are confirmed. */
export const bulkRef = defineRef<{ of(businessId: string): BulkJobs; work: BulkWork }>('bulk.jobs')
