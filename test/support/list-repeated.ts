import type { Reporter, TestCase } from 'vitest/node'

/** Prints each test that failed at first and passed when it was repeated, with its first error. */
export const listRepeated = (): Reporter => {
  const lines: string[] = []
  return {
    onTestCaseResult(test: TestCase) {
      if (test.diagnostic()?.flaky !== true) return
      const error = test.result().errors?.[0]?.message.split('\n')[0]
      lines.push(`FLAKY ${test.module.relativeModuleId} > ${test.fullName}: ${error}`)
    },
    onTestRunEnd() {
      for (const line of lines) console.error(line)
    },
  }
}
