import { defineRef } from '../definitions.ts'
import type { Intake } from './intake-batches.ts'
import type { IntakeLeader } from './intake-leader.ts'

/** Admits jobs of the public queue, and leads that: one worker of a database at a time. */
export const intakeRef = defineRef<{ jobs: Intake; leader: IntakeLeader }>('intake.jobs')
