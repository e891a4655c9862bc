import { test } from 'vitest'
import { isGate } from './marks.ts'

export { isGate }

/** These rows; in the gate only the first so many. */
export const inGate = <Row>(count: number, rows: readonly Row[]): readonly Row[] =>
  isGate ? rows.slice(0, count) : rows

/** A test that the gate leaves out. A whole file is left out by its mark. */
export const testInAll = (title: string, run: () => Promise<unknown>): void => {
  if (!isGate) test(title, run)
}

/** The gate is on the embedded database although there are servers: what a test says of SQL alone, it says there. */
export const isSaidByServers =
  isGate && process.env.MASON_TEST_BACKEND === 'embedded' && Boolean(process.env.TEST_DATABASE_URL)
