import type { Reporter } from 'vitest/node'

/**
 * Writes the seconds of all steps of a CI run to stderr when the tests have ended, before the summary of the runner,
 * which must come last. `earlier` are the steps before `npm test`, which began at `since` (seconds since 1970).
 */
export const createStepTimes = (earlier: string, since: number): Reporter => {
  const seconds = (from: number): number => Math.round(Date.now() / 1000 - from)
  const beforeTests = seconds(since)
  return {
    onTestRunEnd() {
      const tests = seconds(since) - beforeTests
      process.stderr.write(
        `\nci: steps: ${earlier}npm test ${beforeTests + tests} s (checks and build ${beforeTests} s, tests ${tests} s)\n`,
      )
    },
  }
}
