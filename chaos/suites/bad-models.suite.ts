import { meetBadModels } from '../bad-models/campaign.ts'
import type { Suite } from '../suite.ts'

const suite: Suite = {
  about:
    '24 faults of a model server: each run ends in time, with the right code and the right usage; nothing leaks',
  run: (options) => meetBadModels(Math.max(20, Math.round(5000 * options.scale)), options),
}
export default suite
