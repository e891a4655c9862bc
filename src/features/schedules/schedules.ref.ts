import { defineRef } from '../definitions.ts'
import type { FiringCounts } from './schedule-firing.ts'

/** Fires what is due, and counts it; `counts` is null until the first time. */
export type ScheduleFiring = { fireDue(): Promise<void>; counts(): FiringCounts | null }
/** See `ScheduleFiring`. */
export const scheduleFiringRef = defineRef<ScheduleFiring>('schedules.firing')
