import { defineFeature } from '../definitions.ts'

export default defineFeature({
  id: 'intake',
  tables: ['held_jobs', 'intake_lease', 'recovered_jobs', 'rejected_jobs'],
})
