import { poisonRuns } from '../poison/campaign.ts'
import type { Suite } from '../suite.ts'

const suite: Suite = {
  about:
    'runs that take down whoever works on them: given up after 5 tries, while their neighbours go on as ever',
  run: (options) => poisonRuns(Math.max(1, Math.round(6 * options.scale)), options),
}
export default suite
