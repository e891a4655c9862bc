import { mandateProblemRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { findMandateProblem } from './mandates/v1/message-mandates.ts'

export default defineService({ provides: mandateProblemRef, needs: {}, start: () => findMandateProblem })
