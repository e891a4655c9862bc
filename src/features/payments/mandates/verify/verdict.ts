import { type MandateErrorCode, toMandateErrorCode, type Violation } from '../violations.ts'

/**
 * What a verification found. `crypto` is about who signed what: with a violation there, nothing else is looked at. `constraints` is
 * about what they allow. All violations of a stage are named; `code` is AP2's own for them.
 */
export type Verdict<Value> =
  | { ok: true; stage: 'constraints'; code: null; violations: []; value: Value }
  | {
      ok: false
      stage: 'crypto' | 'constraints'
      code: MandateErrorCode
      violations: Violation[]
    }

/** The verdict of a stage that has violations. */
export const refuseAt = (
  stage: 'crypto' | 'constraints',
  violations: Violation[],
): Extract<Verdict<never>, { ok: false }> => ({
  ok: false,
  stage,
  code: toMandateErrorCode(violations) ?? 'invalid_credential',
  violations,
})

/** The verdict of the last stage. */
export const conclude = <Value>(violations: Violation[], value: Value): Verdict<Value> =>
  violations.length > 0
    ? refuseAt('constraints', violations)
    : { ok: true, stage: 'constraints', code: null, violations: [], value }
