import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'bulk', tables: ['bulk_jobs', 'bulk_runs'] })
