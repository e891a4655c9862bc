import { defineLoop } from '../definitions.ts'
import { scheduleFiringRef } from './schedules.ref.ts'

export default defineLoop({
  name: 'firing schedules',
  everyMs: 1000,
  needs: { firing: scheduleFiringRef },
  run: ({ firing }) => firing.fireDue(),
})
