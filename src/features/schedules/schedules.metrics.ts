import { defineMetrics } from '../definitions.ts'
import { scheduleFiringRef } from './schedules.ref.ts'

export default defineMetrics({
  name: 'mason_schedules_total',
  help: 'Planned times of schedules by result: fired (a run was submitted), failed (last_error of the schedule says why)',
  label: 'result',
  needs: { firing: scheduleFiringRef },
  read: ({ firing }) => firing.counts(),
})
