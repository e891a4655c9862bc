import { storm } from '../storm/storm.ts'
import type { Suite } from '../suite.ts'

const suite: Suite = {
  about:
    '1,000 SSE clients are dropped 20 times each and come back: no gap, no repeat, everyone sees the end',
  run: storm,
}

export default suite
