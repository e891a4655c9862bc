import { defineLoop } from '../definitions.ts'
import { intakeRef } from './intake.ref.ts'

export default defineLoop({
  name: 'leading the intake',
  everyMs: 500,
  needs: { intake: intakeRef },
  run: ({ intake }) => intake.leader.lead(),
  drain: ({ intake }, lastRun) => intake.leader.stop(lastRun),
})
