import { z } from 'zod'
import { isMasonError } from './errors.ts'

/** No model could serve a visit. `waitMs`: a call after so many milliseconds may be answered. */
export type Outage = { node: string; code: string; message: string; waitMs: number }

/** One try of a run that no model could serve, and how long the run waited after it. `at` is a time in ISO. */
export type OutageTry = Omit<Outage, 'waitMs'> & { at: string; delay_ms: number }

/** The tries of a run that no model could serve: the first and the last ones, and how many between them are left out. */
export type OutageRecord = { first: readonly OutageTry[]; omitted: number; last: readonly OutageTry[] }

const detailSchema = z.object({ wait_ms: z.number().min(0) })

/** The outage that an error of a visit reports; null where waiting cannot fix it. */
export const readOutage = (node: string, error: unknown): Outage | null => {
  if (!isMasonError(error)) return null
  const detail = detailSchema.safeParse(error.detail)
  const { code, message } = error
  return detail.success ? { node, code, message, waitMs: detail.data.wait_ms } : null
}
