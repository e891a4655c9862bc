import type { FeatureSource } from '../../../features/definition-files.ts'
import type { Config } from '../../../infra/config/config.ts'
import type { Migration } from '../../../infra/database/migration.ts'

/** One line of the doctor's report. `remedy` says how to fix the problem or, where `ok` is true, what would be better. */
export type DoctorFinding = { ok: boolean; text: string; remedy?: string | undefined }

/** The features of the build and of the product, and all migrations; absent: those of the build. */
export type LoadedFeatures = { sources: readonly FeatureSource[]; migrations?: readonly Migration[] }

/** Checks one thing that Mason depends on. The caller reports an error that it throws as a finding. */
export type DoctorCheck = (
  config: Config,
  signal: AbortSignal,
  features: LoadedFeatures,
) => Promise<DoctorFinding[]>

/** A finding that all is well; `remedy` says what would be better. */
export const pass = (text: string, remedy?: string): DoctorFinding => ({ ok: true, text, remedy })

/** A finding of a problem. */
export const fail = (text: string, remedy: string): DoctorFinding => ({ ok: false, text, remedy })
