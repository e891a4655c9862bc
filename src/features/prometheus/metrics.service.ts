import { metricsRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createMetrics } from './metrics.ts'

export default defineService({ provides: metricsRef, needs: {}, start: () => createMetrics })
