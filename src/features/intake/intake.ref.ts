import { defineRef } from '../definitions.ts'
import type { Intake } from './intake-batches.ts'
import type { IntakeLeader } from './intake-leader.ts'

/** `leader`: admits jobs of the public queue by one worker of a database at a time. `jobs`: what it admits them with, for tests. */
export const intakeRef = defineRef<{ jobs: Intake; leader: IntakeLeader }>('intake.jobs')
