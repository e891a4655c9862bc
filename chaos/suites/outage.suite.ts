import { outage } from '../outage/outage.ts'
import type { Suite } from '../suite.ts'

const suite: Suite = {
  about:
    'the only vendor is gone for 90 s in the middle of 200 runs: all are completed, none twice, and none holds a lease meanwhile',
  run: outage,
}

export default suite
