import { appendFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect } from 'vitest'

/** Before each file: draws of fast-check are the same in each run, unless `MASON_TEST_SEED` is another number. */
fc.configureGlobal({ seed: Number(process.env.MASON_TEST_SEED ?? 15) })

// for the verdict of npm test: which files had run in a process before one of them failed
const { MASON_TEST_LOG: log } = process.env
if (log) appendFileSync(log, `${JSON.stringify({ pid: process.pid, path: expect.getState().testPath })}\n`)
