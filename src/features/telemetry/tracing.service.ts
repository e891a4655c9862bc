import { tracingRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { openTelemetry } from './telemetry.ts'

export default defineService({ provides: tracingRef, needs: {}, start: () => openTelemetry })
