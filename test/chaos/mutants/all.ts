import { actingMutants } from './acting.ts'
import { admissionMutants } from './admission.ts'
import { claimMutants } from './claims.ts'
import { lettingGoMutants } from './letting-go.ts'
import { logMutants } from './log.ts'
import type { Mutant } from './mutant.ts'

/** Every guard that must be missed when it is gone. */
export const mutants: readonly Mutant[] = [
  ...admissionMutants,
  ...logMutants,
  ...claimMutants,
  ...lettingGoMutants,
  ...actingMutants,
]
