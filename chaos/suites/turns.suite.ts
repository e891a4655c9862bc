import type { Suite } from '../suite.ts'
import { turns } from '../turns/campaign.ts'

const suite: Suite = {
  about:
    'sessions of five queue jobs over 1, 2 and 4 workers that are killed and frozen: no turn swapped, lost or doubled',
  run: turns,
}

export default suite
