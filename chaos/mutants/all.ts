import { admissionMutants } from './admission.ts'
import { blockMutants } from './blocks.ts'
import { claimMutants } from './claims.ts'
import { consentMutants } from './consent.ts'
import { effectMutants } from './effects.ts'
import { inputMutants } from './input.ts'
import { ledgerMutants } from './ledger.ts'
import { limitMutants } from './limits.ts'
import { logMutants } from './log.ts'
import { mandateMutants } from './mandates.ts'
import { memoryMutants } from './memory.ts'
import { modelMutants } from './models.ts'
import type { Mutant } from './mutant.ts'
import { openMandateMutants } from './open-mandates.ts'
import { paymentEndMutants } from './payment-ends.ts'
import { paymentKeyMutants } from './payment-keys.ts'
import { paymentWorkMutants } from './payment-work.ts'
import { paymentMutants } from './payments.ts'
import { promptMutants } from './prompts.ts'
import { providerMutants } from './providers.ts'
import { releaseMutants } from './release.ts'
import { replyMutants } from './replies.ts'
import { roleMutants } from './roles.ts'
import { taintMutants } from './taint.ts'

/** Every guard that must be missed when it is gone. */
export const mutants: readonly Mutant[] = [
  ...admissionMutants,
  ...logMutants,
  ...claimMutants,
  ...releaseMutants,
  ...effectMutants,
  ...blockMutants,
  ...promptMutants,
  ...limitMutants,
  ...roleMutants,
  ...inputMutants,
  ...modelMutants,
  ...replyMutants,
  ...memoryMutants,
  ...paymentMutants,
  ...paymentKeyMutants,
  ...mandateMutants,
  ...providerMutants,
  ...consentMutants,
  ...openMandateMutants,
  ...ledgerMutants,
  ...paymentWorkMutants,
  ...paymentEndMutants,
  ...taintMutants,
]
