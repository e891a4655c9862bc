import { appendFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect } from 'vitest'
import { testSeed } from './random.ts'

// before each file
fc.configureGlobal({ seed: testSeed })

// for the verdict of npm test: which files had run in a process before one of them failed
const { MASON_TEST_LOG: log } = process.env
if (log) appendFileSync(log, `${JSON.stringify({ pid: process.pid, path: expect.getState().testPath })}\n`)
