import type { Config } from '../../../infra/config/config.ts'

/** One line of the doctor's report. `remedy` says how to fix the problem or, where `ok` is true, what would be better. */
export type DoctorFinding = { ok: boolean; text: string; remedy?: string | undefined }

/** Checks one thing that Mason depends on. The caller reports an error that it throws as a finding. */
export type DoctorCheck = (config: Config, signal: AbortSignal) => Promise<DoctorFinding[]>

/** A finding that all is well; `remedy` says what would be better. */
export const pass = (text: string, remedy?: string): DoctorFinding => ({ ok: true, text, remedy })

/** A finding of a problem. */
export const fail = (text: string, remedy: string): DoctorFinding => ({ ok: false, text, remedy })
