import { poisonRuns } from '../poison/campaign.ts'
import { ways } from '../poison/worker.ts'
import type { Suite } from '../suite.ts'

const suite: Suite = {
  about: 'runs that take down their worker: given up after 5 tries, while their neighbours go on as ever',
  run: (options) => poisonRuns(Math.max(1, Math.round(ways.length * options.scale)), options),
}
export default suite
