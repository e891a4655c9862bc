import { violated } from '../../scripts/test-verdict.ts'
import { checkInvariants as checkState } from '../../src/testing/invariants.ts'

/** What Mason promises does not hold: something was lost or doubled, or a fence or a ledger let through what it must not. */
class InvariantError extends Error {
  override name = 'InvariantError'
}

/** Runs assertions about a promise of Mason. `npm test` never repeats a test in which they fail. */
export const invariant = <T>(check: () => T): T => {
  try {
    return check()
  } catch (error) {
    throw new InvariantError(`${violated} ${error instanceof Error ? error.message : error}`, {
      cause: error,
    })
  }
}

/** The invariants of CONTRACT section 5, as an export of the package checks them. */
export const checkInvariants: typeof checkState = (...args) => invariant(() => checkState(...args))
