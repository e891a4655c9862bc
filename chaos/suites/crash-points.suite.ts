import { runSweep } from '../campaign/crash-sweep.ts'
import type { Suite } from '../suite.ts'

export default {
  about: 'a worker dies before and after every durable write there is: others make good what it began',
  run: runSweep,
} satisfies Suite
