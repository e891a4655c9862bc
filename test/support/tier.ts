import { test } from 'vitest'

/** True in `npm test`, which leaves out what a cheaper test says as well. Alone, and in `npm run test:all`, all tests of a file run. */
export const isGate = process.env.MASON_TEST_TIER === 'gate'

/** A test that the gate leaves out. A whole file is left out by its mark. */
export const testInAll = (title: string, run: () => Promise<unknown>): void => {
  if (!isGate) test(title, run)
}
